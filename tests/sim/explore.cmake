# The votes of one slot, searched exhaustively within bounds of seconds (explore.h), and broken rules that the search must find.
if(TARGET dpsim)
    add_test(NAME sim/explore COMMAND dpsim --explore --bids-all 1 --crashes 1)
    add_test(NAME sim/explore_each_vote COMMAND dpsim --explore --bids-all 0 --crashes 2 --votes each)
    set_tests_properties(sim/explore sim/explore_each_vote PROPERTIES
        LABELS "sim" TIMEOUT 120 PASS_REGULAR_EXPRESSION "all searched")
endif()
foreach(number 1 2 3 4 6 7 9)
    if(TARGET dpsim_m${number})
        add_test(NAME sim/explore_finds_mutation_${number} COMMAND dpsim_m${number} --explore)
        set_tests_properties(sim/explore_finds_mutation_${number} PROPERTIES
            LABELS "mutation" TIMEOUT 60 PASS_REGULAR_EXPRESSION "FAIL (S1|V1|V2|V3): ")
    endif()
endforeach()
