# The addon switchyard_bpf.node: bpf(2), and objects loaded by the shared libbpf that pkg-config finds.

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

# For another machine: a root folder with libbpf's headers and library for it, under the paths they have there.
set(BPF_ROOT "" CACHE PATH "root folder of the machine's libbpf; empty: this machine's own")
set(PKG_CONFIG_ENVIRONMENT "")
if(BPF_ROOT)
  set(PKG_CONFIG_ENVIRONMENT ${CMAKE_COMMAND} -E env PKG_CONFIG_SYSROOT_DIR=${BPF_ROOT}
    PKG_CONFIG_LIBDIR=${BPF_ROOT}/usr/lib/${CROSS_TRIPLE}/pkgconfig)
  # pkg-config leaves out what is a usual place in the folder.
  set(BPF_PLACES -isystem ${BPF_ROOT}/usr/include)
  link_directories(${BPF_ROOT}/usr/lib/${CROSS_TRIPLE})
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

# The objects are the same for all machines, so this one's headers will do. Debian keeps <asm/types.h> in a folder of the machine's.
execute_process(COMMAND cc -print-multiarch
  OUTPUT_VARIABLE MACHINE_HEADERS OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set(EMBEDDED probe-hooks probe-conntrack drops)
set(EMBEDDED_OBJECTS "")
foreach(source ${EMBEDDED})
  set(object ${CMAKE_BINARY_DIR}/${source}.bpf.o)
  add_custom_command(OUTPUT ${object}
    # BTF names source files: the same on every machine.
    COMMAND ${CLANG} -O2 -g -ffile-prefix-map=${CMAKE_CURRENT_SOURCE_DIR}=/switchyard
      -ffile-compilation-dir=/switchyard -Wall -Wextra -Werror -target bpfel -mcpu=v3 -idirafter /usr/include/${MACHINE_HEADERS}
      -c ${CMAKE_CURRENT_SOURCE_DIR}/bpf/${source}.bpf.c -o ${object}
    COMMAND ${LLVM_STRIP} -g ${object}
    DEPENDS bpf/${source}.bpf.c bpf/drops.h)
  list(APPEND EMBEDDED_OBJECTS ${object})
endforeach()

add_addon(switchyard_bpf cpp/bpf_addon.cc cpp/bpf_calls.cc cpp/bpf_fingerprint.cc cpp/bpf_object.cc cpp/bpf_embedded.cc)
set_source_files_properties(cpp/bpf_embedded.cc PROPERTIES OBJECT_DEPENDS "${EMBEDDED_OBJECTS}")
target_compile_definitions(switchyard_bpf PRIVATE SWITCHYARD_OBJECTS="${CMAKE_BINARY_DIR}")
target_compile_options(switchyard_bpf PRIVATE ${LIBBPF_COMPILE} ${BPF_PLACES})
target_link_libraries(switchyard_bpf PRIVATE ${LIBBPF_LINK})
# Where the library was found says nothing about the machine that runs this.
set_target_properties(switchyard_bpf PROPERTIES SKIP_BUILD_RPATH ON)
