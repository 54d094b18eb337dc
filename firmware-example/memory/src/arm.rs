//! Copying, filling and comparing memory on Arm, in 110 bytes of flash.
//!
//! The compiler calls these functions by their names in the run-time ABI. Its own library has a
//! copy of each function for every alignment, 2,000 bytes in all. These functions move single words
//! if everything is aligned, and bytes otherwise. They replace the library's functions, whose
//! symbols are weak. All Cortex-M processors have these Thumb instructions.
#![expect(unsafe_code, reason = "the compiler's own calls are not made in Rust")]

use core::arch::global_asm;

// SAFETY: the functions follow the Arm run-time ABI (section 5.3.4, "Memory copying, clearing, and
// setting") and the C standard. They change no registers other than r0 to r3. `memcmp` restores r4.
global_asm!(
    "
    .syntax unified
    .thumb

    .section .text.memcpy, \"ax\", %progbits
    .p2align 1
    .weak memcpy, __aeabi_memcpy, __aeabi_memcpy4, __aeabi_memcpy8
    .type memcpy, %function
    .type __aeabi_memcpy, %function
    .type __aeabi_memcpy4, %function
    .type __aeabi_memcpy8, %function
    .thumb_func
__aeabi_memcpy8:
    .thumb_func
__aeabi_memcpy4:
    .thumb_func
__aeabi_memcpy:
    .thumb_func
memcpy:
    push {{r0, lr}}
    movs r3, r0
    orrs r3, r1
    lsls r3, r3, #30
    bne 3f
1:  subs r2, #4
    blo 2f
    ldmia r1!, {{r3}}
    stmia r0!, {{r3}}
    b 1b
2:  adds r2, #4
3:  subs r2, #1
    blo 4f
    ldrb r3, [r1]
    adds r1, #1
    strb r3, [r0]
    adds r0, #1
    b 3b
4:  pop {{r0, pc}}
    .size memcpy, . - memcpy

    .section .text.memset, \"ax\", %progbits
    .p2align 1
    .weak memset, __aeabi_memset, __aeabi_memset4, __aeabi_memset8
    .weak __aeabi_memclr, __aeabi_memclr4, __aeabi_memclr8
    .type memset, %function
    .type __aeabi_memset, %function
    .type __aeabi_memset4, %function
    .type __aeabi_memset8, %function
    .type __aeabi_memclr, %function
    .type __aeabi_memclr4, %function
    .type __aeabi_memclr8, %function
    .thumb_func
memset:
    mov r3, r1
    mov r1, r2
    mov r2, r3
    b 5f
    .thumb_func
__aeabi_memclr8:
    .thumb_func
__aeabi_memclr4:
    .thumb_func
__aeabi_memclr:
    movs r2, #0
    .thumb_func
__aeabi_memset8:
    .thumb_func
__aeabi_memset4:
    .thumb_func
__aeabi_memset:
5:  push {{r0, lr}}
    uxtb r2, r2
    lsls r3, r2, #8
    orrs r2, r3
    lsls r3, r2, #16
    orrs r2, r3
    lsls r3, r0, #30
    bne 8f
6:  subs r1, #4
    blo 7f
    stmia r0!, {{r2}}
    b 6b
7:  adds r1, #4
8:  subs r1, #1
    blo 9f
    strb r2, [r0]
    adds r0, #1
    b 8b
9:  pop {{r0, pc}}
    .size memset, . - memset

    .section .text.memcmp, \"ax\", %progbits
    .p2align 1
    .weak memcmp, bcmp
    .type memcmp, %function
    .type bcmp, %function
    .thumb_func
bcmp:
    .thumb_func
memcmp:
    push {{r4, lr}}
    movs r3, #0
10: subs r2, #1
    blo 11f
    ldrb r3, [r0]
    ldrb r4, [r1]
    adds r0, #1
    adds r1, #1
    subs r3, r3, r4
    beq 10b
11: mov r0, r3
    pop {{r4, pc}}
    .size memcmp, . - memcmp
    "
);
