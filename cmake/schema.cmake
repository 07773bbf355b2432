# The messages of the wire: src/schema/*.proto through protoc-c into build/schema/, compiled
# without our warnings. Included as "schema/grpc_service.pb-c.h" and so on.
pkg_check_modules(PROTOBUFC REQUIRED IMPORTED_TARGET libprotobuf-c)
find_program(PROTOC_C NAMES protoc-c)
if(NOT PROTOC_C)
  message(FATAL_ERROR "protoc-c not found: apt-get install protobuf-c-compiler")
endif()
set(schema_out ${CMAKE_BINARY_DIR}/schema)
file(MAKE_DIRECTORY ${schema_out})
set(schema_files health model_config grpc_service)
set(schema_sources "")
foreach(name ${schema_files})
  set(imports "")
  if(name STREQUAL grpc_service)
    set(imports ${CMAKE_SOURCE_DIR}/src/schema/model_config.proto)
  endif()
  add_custom_command(
    OUTPUT ${schema_out}/${name}.pb-c.c ${schema_out}/${name}.pb-c.h
    COMMAND ${PROTOC_C} -I${CMAKE_SOURCE_DIR}/src/schema --c_out=${schema_out} ${name}.proto
    DEPENDS ${CMAKE_SOURCE_DIR}/src/schema/${name}.proto ${imports}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/src/schema VERBATIM)
  list(APPEND schema_sources ${schema_out}/${name}.pb-c.c ${schema_out}/${name}.pb-c.h)
endforeach()
add_library(telltale_messages STATIC ${schema_sources})
target_compile_options(telltale_messages PRIVATE -w)
target_include_directories(telltale_messages SYSTEM PUBLIC ${CMAKE_BINARY_DIR})
target_link_libraries(telltale_messages PUBLIC PkgConfig::PROTOBUFC)
