# What `cmake --install` puts where, and libtelltale: the folders below the engine as one
# library behind one public header. Left out of sanitizer builds, which are not installed.
set(share ${CMAKE_INSTALL_DATADIR})

if(TARGET telltale)
  install(TARGETS telltale RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr") # cmake/package.cmake packs it
  install(FILES docs/telltale.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()
install(FILES LICENSE THIRD-PARTY-NOTICES DESTINATION ${share}/doc/telltale)
install(FILES README.md ARCHITECTURE.md DESTINATION ${share}/doc/telltale OPTIONAL)
install(DIRECTORY docs/ DESTINATION ${share}/doc/telltale/docs FILES_MATCHING PATTERN "*.md")
install(DIRECTORY examples/ DESTINATION ${share}/telltale/examples
  PATTERN trained EXCLUDE PATTERN __pycache__ EXCLUDE PATTERN .gitignore EXCLUDE)

# The library that scripts/setup fetched, where the program looks for it: ../lib/telltale.
install(FILES .deps/onnxruntime/lib/libonnxruntime.so.1
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/telltale OPTIONAL
  PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)

if(TELLTALE_SANITIZE OR TELLTALE_FUZZER OR NOT TARGET telltale_engine)
  return()
endif()
set(objects "")
foreach(folder base sync measure messages schema prep infer batch engine)
  if(TARGET telltale_${folder})
    list(APPEND objects $<TARGET_OBJECTS:telltale_${folder}>)
  endif()
endforeach()
add_library(telltale_static STATIC ${objects})
add_library(telltale_shared SHARED ${objects})
set(exports ${CMAKE_SOURCE_DIR}/cmake/libtelltale.map)
target_link_libraries(telltale_shared PRIVATE m Threads::Threads ${CMAKE_DL_LIBS}
  PkgConfig::JANSSON PkgConfig::SIMDJSON PkgConfig::PREP PkgConfig::PROTOBUFC)
# Whatever is not in the public header stays inside.
target_link_options(telltale_shared PRIVATE -Wl,--version-script=${exports} -Wl,--no-undefined)
set_target_properties(telltale_shared PROPERTIES LINK_DEPENDS ${exports})
set_target_properties(telltale_static telltale_shared PROPERTIES
  OUTPUT_NAME telltale LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
install(TARGETS telltale_static telltale_shared
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES include/telltale.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} OPTIONAL)
file(RELATIVE_PATH TELLTALE_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" TELLTALE_PC_PREFIX ${TELLTALE_PC_PREFIX})
configure_file(cmake/telltale.pc.in telltale.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/telltale.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
