# Installing (CMakeLists.txt includes it): programs, plugin, manual, completion, unit, documents. cmake --install build/release
# [--prefix FOLDER]; DESTDIR in the environment goes before it, for packages.
set(DP_DOC_DIR share/doc/dpnode)

# The files that are installed, and nothing for tests: cmake --build build/release --target ship.
set(DP_SHIPPED_PROGRAMS dpnode dpnoded dpnode-worker)
if(TARGET dpnode-web)
    list(APPEND DP_SHIPPED_PROGRAMS dpnode-web)
endif()
add_custom_target(ship DEPENDS ${DP_SHIPPED_PROGRAMS})
foreach(program ${DP_SHIPPED_PROGRAMS})
    list(APPEND DP_SHIPPED $<TARGET_FILE:${program}>)
endforeach()
if(TARGET dpnode_cuda)
    add_dependencies(ship dpnode_cuda)
    list(APPEND DP_SHIPPED $<TARGET_FILE:dpnode_cuda>)
endif()
install(CODE "set(shipped \"${DP_SHIPPED}\")\nset(build [[${CMAKE_BINARY_DIR}]])")
install(CODE [[
    foreach(file ${shipped})
        if(NOT EXISTS "${file}")
            message(FATAL_ERROR "dpnode cannot be installed: ${file} is not built.\n"
                "Fix: cmake --build ${build} --target ship")
        endif()
    endforeach()
]])

# A folder that cannot be written says so before anything is copied.
install(CODE [[
    set(to "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")
    execute_process(COMMAND mkdir -p "${to}/bin" RESULT_VARIABLE made ERROR_VARIABLE why)
    if(made EQUAL 0)
        execute_process(COMMAND test -w "${to}/bin" RESULT_VARIABLE made)
        set(why "${to}/bin cannot be written by this user")
    endif()
    if(NOT made EQUAL 0)
        string(STRIP "${why}" why)
        message(FATAL_ERROR "dpnode cannot be installed in ${to}: ${why}.\n"
            "Fix: install as root (sudo cmake --install ...), or into a folder of your own "
            "(cmake --install ... --prefix ~/.local).")
    endif()
]])

install(TARGETS ${DP_SHIPPED_PROGRAMS} RUNTIME DESTINATION bin)
if(TARGET dpnode_cuda)
    install(TARGETS dpnode_cuda LIBRARY DESTINATION lib/dpnode) # compute/backend/plugin.c looks there.
endif()
install(FILES docs/man/dpnode.1 DESTINATION share/man/man1)
install(FILES docs/man/dpnoded.8 docs/man/dpnode-worker.8 DESTINATION share/man/man8)
if(TARGET dpnode-web)
    install(FILES docs/man/dpnode-web.1 DESTINATION share/man/man1)
endif()
install(FILES contrib/dpnode.bash DESTINATION share/bash-completion/completions RENAME dpnode)
install(FILES contrib/dpnode.zsh DESTINATION share/zsh/site-functions RENAME _dpnode)
install(FILES contrib/dpnode.fish DESTINATION share/fish/vendor_completions.d)
install(FILES README.md LICENSE DESTINATION ${DP_DOC_DIR})
install(FILES contrib/script/dpnode.h DESTINATION include)
install(DIRECTORY contrib/prometheus contrib/script contrib/kubernetes contrib/slurm contrib/skypilot contrib/grafana
    DESTINATION ${DP_DOC_DIR}/contrib USE_SOURCE_PERMISSIONS)
install(DIRECTORY docs/ DESTINATION ${DP_DOC_DIR}/docs FILES_MATCHING PATTERN "*.md" PATTERN "*.yaml" PATTERN "*.svg" PATTERN "*.png" PATTERN man EXCLUDE
    PATTERN records EXCLUDE PATTERN decisions EXCLUDE)

# The units name the program where it lies: that of the machine, and that of a user, which systemd also looks for in
# ~/.local/share (systemd-analyze --user unit-paths), but not in ~/.local/lib.
install(CODE "set(contrib [[${CMAKE_SOURCE_DIR}/contrib]])")
install(CODE [[
    foreach(unit system/dpnoded.service user/dpnoded-user.service)
        get_filename_component(manager "${unit}" DIRECTORY)
        get_filename_component(name "${unit}" NAME)
        set(place lib)
        if(manager STREQUAL "user" AND NOT CMAKE_INSTALL_PREFIX MATCHES "^/usr(/local)?$")
            set(place share)
        endif()
        set(to "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${place}/systemd/${manager}/dpnoded.service")
        file(READ "${contrib}/${name}" text)
        string(REPLACE "/usr/bin/dpnoded" "${CMAKE_INSTALL_PREFIX}/bin/dpnoded" text "${text}")
        message(STATUS "Installing: ${to}")
        file(WRITE "${to}" "${text}")
    endforeach()
]])
