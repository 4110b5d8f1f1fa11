# installed.cmake - the end of `cmake --install`: what is left to do before programs find the library in `libdir`.
if("$ENV{DESTDIR}" STREQUAL "")
  execute_process(COMMAND sh -c "PATH=$PATH:/usr/sbin:/sbin; ldconfig -v -N" OUTPUT_VARIABLE searched ERROR_QUIET)
  file(REAL_PATH "${libdir}" real)
  if("${searched}" MATCHES "(^|\n)(${libdir}|${real}):")
    message("Run ldconfig as root, so that programs find libmillrace.so in ${libdir}")
  else()
    message("The dynamic linker does not search ${libdir}; for programs that use libmillrace, set\n"
            "  LD_LIBRARY_PATH=${libdir} PKG_CONFIG_PATH=${libdir}/pkgconfig")
  endif()
endif()
