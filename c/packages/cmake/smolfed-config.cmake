# find_package(smolfed) defines the target smolfed::smolfed: the library and its header. The target
# smolfed::central is the library for central trust only, smolfed::questions the one that also
# answers questions, smolfed::sleep that of devices that sleep, and smolfed::delivery that of devices
# that only infer.
cmake_policy(VERSION 3.16)

if(NOT TARGET smolfed::smolfed)
  get_filename_component(_smolfed_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  foreach(_smolfed_build smolfed central questions sleep delivery)
    string(REPLACE "smolfed_smolfed" "smolfed" _smolfed_name "smolfed_${_smolfed_build}")
    add_library(smolfed::${_smolfed_build} STATIC IMPORTED GLOBAL)
    set_target_properties(smolfed::${_smolfed_build} PROPERTIES
      IMPORTED_LOCATION "${_smolfed_root}/lib/lib${_smolfed_name}.a"
      INTERFACE_INCLUDE_DIRECTORIES "${_smolfed_root}/include"
      INTERFACE_LINK_LIBRARIES "@LIBRARIES@")
  endforeach()
  unset(_smolfed_root)
  unset(_smolfed_name)
endif()
