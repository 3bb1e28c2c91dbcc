# The addon switchyard_bpf.node: bpf(2), and objects loaded by the shared libbpf that pkg-config finds. For another architecture
# LIBBPF_ROOT is the folder in which that one's libbpf-dev is unpacked, with what it depends on; without it there is no such addon.
if(CMAKE_CROSSCOMPILING AND NOT LIBBPF_ROOT)
  message(STATUS "LIBBPF_ROOT is not given: switchyard_bpf is not built")
  return()
endif()

find_program(PKG_CONFIG pkg-config)
find_program(CLANG clang)
find_program(LLVM_STRIP llvm-strip)
if(NOT PKG_CONFIG)
  message(FATAL_ERROR "pkg-config is missing, which tells where libbpf is: ./dev setup installs it (Debian: pkgconf)")
endif()
if(NOT CLANG)
  message(FATAL_ERROR "clang is missing, which compiles BPF programs: ./dev setup installs it (Debian: clang)")
endif()

if(NOT LLVM_STRIP)
  message(FATAL_ERROR "llvm-strip is missing, which BPF programs need: ./dev setup installs it (Debian: llvm)")
endif()

set(PKG_CONFIG_ENVIRONMENT "")
if(LIBBPF_ROOT)
  set(PKG_CONFIG_ENVIRONMENT ${CMAKE_COMMAND} -E env PKG_CONFIG_SYSROOT_DIR=${LIBBPF_ROOT}
    PKG_CONFIG_LIBDIR=${LIBBPF_ROOT}/usr/lib/${CROSS_TRIPLE}/pkgconfig
    PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 PKG_CONFIG_ALLOW_SYSTEM_LIBS=1)
endif()
function(ask_pkg_config result)
  execute_process(COMMAND ${PKG_CONFIG_ENVIRONMENT} ${PKG_CONFIG} ${ARGN} libbpf
    OUTPUT_VARIABLE answer ERROR_VARIABLE said RESULT_VARIABLE status OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR
      "libbpf >= 1.0 with its headers is missing: ./dev setup installs it (Debian: libbpf-dev). pkg-config says: ${said}")
  endif()
  separate_arguments(answer)
  set(${result} "${answer}" PARENT_SCOPE)
endfunction()
ask_pkg_config(ignored "--atleast-version=1.0" --exists --print-errors)
ask_pkg_config(LIBBPF_COMPILE --cflags)
ask_pkg_config(LIBBPF_LINK --libs)
if(LIBBPF_ROOT)
  # Its folder holds another libc too, which must not be found.
  set(LIBBPF_LINK ${LIBBPF_ROOT}/usr/lib/${CROSS_TRIPLE}/libbpf.so)
endif()

# Debian keeps <asm/types.h> in a folder of the machine's; what is taken from there is the same on all of them.
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-multiarch
  OUTPUT_VARIABLE MACHINE_HEADERS OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set(PROBES hooks conntrack sockets)
set(PROBE_OBJECTS "")
foreach(probe ${PROBES})
  set(object ${CMAKE_BINARY_DIR}/probe-${probe}.bpf.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CLANG} -O2 -g -Wall -Wextra -Werror -target bpfel -mcpu=v3 ${LIBBPF_COMPILE}
      -idirafter ${LIBBPF_ROOT}/usr/include/${MACHINE_HEADERS} -idirafter ${LIBBPF_ROOT}/usr/include
      -c ${CMAKE_CURRENT_SOURCE_DIR}/bpf/probe-${probe}.bpf.c -o ${object}
    COMMAND ${LLVM_STRIP} -g ${object}
    DEPENDS bpf/probe-${probe}.bpf.c)
  list(APPEND PROBE_OBJECTS ${object})
endforeach()

add_addon(switchyard_bpf cpp/bpf_addon.cc cpp/bpf_calls.cc cpp/bpf_object.cc cpp/bpf_probe.cc)
set_source_files_properties(cpp/bpf_probe.cc PROPERTIES OBJECT_DEPENDS "${PROBE_OBJECTS}")
target_compile_definitions(switchyard_bpf PRIVATE SWITCHYARD_PROBES="${CMAKE_BINARY_DIR}")
target_compile_options(switchyard_bpf PRIVATE ${LIBBPF_COMPILE})
target_link_libraries(switchyard_bpf PRIVATE ${LIBBPF_LINK})
