# find_package(smolfed) defines the target smolfed::smolfed: the library and its header. The target
# smolfed::delivery is the library for devices that only infer.
cmake_policy(VERSION 3.16)

if(NOT TARGET smolfed::smolfed)
  get_filename_component(_smolfed_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  add_library(smolfed::smolfed STATIC IMPORTED GLOBAL)
  set_target_properties(smolfed::smolfed PROPERTIES
    IMPORTED_LOCATION "${_smolfed_root}/lib/libsmolfed.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_smolfed_root}/include"
    INTERFACE_LINK_LIBRARIES "@LIBRARIES@")
  add_library(smolfed::delivery STATIC IMPORTED GLOBAL)
  set_target_properties(smolfed::delivery PROPERTIES
    IMPORTED_LOCATION "${_smolfed_root}/lib/libsmolfed_delivery.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_smolfed_root}/include"
    INTERFACE_LINK_LIBRARIES "@LIBRARIES@")
  unset(_smolfed_root)
endif()
