# Compiler and linker flags of the library for makefiles. Include this file in a makefile. Then
# compile with SMOLFED_CPPFLAGS, and link with SMOLFED_LDFLAGS and, last, SMOLFED_LDLIBS.
# SMOLFED_MACHINE has the flags of the processor for gcc.
SMOLFED_ROOT := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
SMOLFED_VERSION := @VERSION@
SMOLFED_TARGET := @TARGET@
SMOLFED_COMPILER := @COMPILER@
SMOLFED_MACHINE := @MACHINE@
SMOLFED_CPPFLAGS := -I$(SMOLFED_ROOT)/include
SMOLFED_LDFLAGS := -Wl,--gc-sections
SMOLFED_LDLIBS := $(SMOLFED_ROOT)/lib/libsmolfed.a @FLAGS@
# For central trust only.
SMOLFED_CENTRAL_LDLIBS := $(SMOLFED_ROOT)/lib/libsmolfed_central.a @FLAGS@
# For devices that also answer questions.
SMOLFED_QUESTIONS_LDLIBS := $(SMOLFED_ROOT)/lib/libsmolfed_questions.a @FLAGS@
# For devices that sleep.
SMOLFED_SLEEP_LDLIBS := $(SMOLFED_ROOT)/lib/libsmolfed_sleep.a @FLAGS@
# For devices that only infer.
SMOLFED_DELIVERY_LDLIBS := $(SMOLFED_ROOT)/lib/libsmolfed_delivery.a @FLAGS@
