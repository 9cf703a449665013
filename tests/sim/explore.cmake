# The votes of one slot, and of two or three that follow each other, searched exhaustively within bounds of seconds (explore.h),
# and broken rules that the search must find.
if(TARGET dpsim)
    add_test(NAME sim/explore COMMAND dpsim --explore --bids-all 1 --crashes 1)
    add_test(NAME sim/explore_each_vote COMMAND dpsim --explore --bids-all 0 --crashes 2 --votes each)
    add_test(NAME sim/explore_two_slots COMMAND dpsim --explore --slots 2 --bids-all 1 --crashes 0)
    add_test(NAME sim/explore_new_voters COMMAND dpsim --explore --slots 2 --voters change --bids-all 0 --crashes 2)
    add_test(NAME sim/explore_three_slots COMMAND dpsim --explore --slots 3 --voters change --bids-all 0 --crashes 1)
    set_tests_properties(sim/explore sim/explore_each_vote sim/explore_two_slots sim/explore_new_voters
        sim/explore_three_slots PROPERTIES
        LABELS "sim" TIMEOUT 120 PASS_REGULAR_EXPRESSION "all searched: [0-9]+ states, [1-9][0-9]* with the last slot decided")
endif()
if(TARGET dpsim_broken)
    foreach(number 1 2 3 4 6 7 9 12 13)
        add_test(NAME sim/explore_finds_mutation_${number} COMMAND dpsim_broken --explore --slots 2 --voters change)
        set_tests_properties(sim/explore_finds_mutation_${number} PROPERTIES ENVIRONMENT DP_BREAK=${number}
            LABELS "mutation" TIMEOUT 60 PASS_REGULAR_EXPRESSION "FAIL (S1|S6|V1|V2|V3): ")
    endforeach()
    # A write that fails: the accept is told all the same.
    add_test(NAME sim/explore_finds_mutation_100
        COMMAND dpsim_broken --explore --slots 2 --voters change --bids-all 0 --crashes 2)
    set_tests_properties(sim/explore_finds_mutation_100 PROPERTIES ENVIRONMENT DP_BREAK=100
        LABELS "mutation" TIMEOUT 60 PASS_REGULAR_EXPRESSION "FAIL V1: ")
endif()
