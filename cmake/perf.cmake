# Benchmarks in C: perf/<name>.c becomes <build>/perf_<name>; perf/<name> (a script) runs it.
# Left out of sanitizer builds, whose times mean nothing.
if(TELLTALE_SANITIZE OR TELLTALE_FUZZER)
  return()
endif()
file(GLOB files CONFIGURE_DEPENDS perf/*.c)
foreach(file ${files})
  get_filename_component(name ${file} NAME_WE)
  if(TARGET telltale_engine AND TARGET telltale_net AND TARGET telltale_proto)
    add_executable(perf_${name} ${file})
    target_link_libraries(perf_${name} PRIVATE telltale_flags telltale_engine telltale_net telltale_proto)
    target_include_directories(perf_${name} SYSTEM PRIVATE ${ORT_INCLUDE_DIR})
  endif()
endforeach()
