# A Debian package: cpack --config BUILD/CPackConfig.cmake -G DEB. Configure with
# -DCMAKE_INSTALL_PREFIX=/usr. It holds what `cmake --install` installs, the systemd unit, its
# options in /etc/telltale/telltale.env and the directory where models are looked for.
option(TELLTALE_SERVICE "install the systemd unit and its options" OFF)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(TELLTALE_SERVICE ON)
endif()
if(TELLTALE_SERVICE)
  install(FILES deploy/systemd/telltale.service DESTINATION /lib/systemd/system)
  install(FILES deploy/systemd/telltale.env DESTINATION /etc/telltale)
  install(DIRECTORY DESTINATION /var/lib/telltale/models)
  add_custom_command(OUTPUT telltale.1.gz
    COMMAND gzip -9nc ${CMAKE_SOURCE_DIR}/docs/telltale.1 > telltale.1.gz DEPENDS docs/telltale.1)
  add_custom_target(packed_manual ALL DEPENDS telltale.1.gz)
  install(FILES ${CMAKE_BINARY_DIR}/telltale.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/telltale RENAME copyright)
  install(FILES CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/telltale RENAME changelog)
endif()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME telltale)
set(CPACK_PACKAGE_CONTACT "The Telltale developers <telltale@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "inference server that says why its slow requests are slow")
set(CPACK_PACKAGE_DESCRIPTION
  "Serves ONNX models with dynamic batching over the Open Inference Protocol,
 records where every request spent its time, loads itself or another server,
 and names the cause of the slowest one per cent.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/deploy/debian/conffiles
  ${CMAKE_SOURCE_DIR}/deploy/debian/postinst ${CMAKE_SOURCE_DIR}/deploy/debian/prerm
  ${CMAKE_SOURCE_DIR}/deploy/debian/postrm
  ${CMAKE_SOURCE_DIR}/deploy/debian/triggers)
include(CPack)
