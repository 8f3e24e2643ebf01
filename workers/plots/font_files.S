// The font's files as bytes of the program; PATCHBAY_FONT_* name them when it is built.
        .section .rodata
        .balign 16
        .global patchbay_font_regular_begin
        .global patchbay_font_regular_end
patchbay_font_regular_begin:
        .incbin PATCHBAY_FONT_REGULAR
patchbay_font_regular_end:
        .balign 16
        .global patchbay_font_bold_begin
        .global patchbay_font_bold_end
patchbay_font_bold_begin:
        .incbin PATCHBAY_FONT_BOLD
patchbay_font_bold_end:
        .byte 0
        .section .note.GNU-stack, "", @progbits
