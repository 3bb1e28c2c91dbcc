# Compiles for another architecture with a Debian cross compiler that is only unpacked, not installed:
#   cmake -DCMAKE_TOOLCHAIN_FILE=cross.cmake -DCROSS_ROOT=FOLDER -DCROSS_TRIPLE=aarch64-linux-gnu ...
# The compiler's own libraries lie in the folder too; whoever runs cmake sets LD_LIBRARY_PATH.
set(CMAKE_SYSTEM_NAME Linux)
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR "${CROSS_TRIPLE}")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CROSS_ROOT CROSS_TRIPLE)
set(CMAKE_SYSROOT ${CROSS_ROOT})
set(CMAKE_C_COMPILER ${CROSS_ROOT}/usr/bin/${CROSS_TRIPLE}-gcc)
set(CMAKE_CXX_COMPILER ${CROSS_ROOT}/usr/bin/${CROSS_TRIPLE}-g++)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
