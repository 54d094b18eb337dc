void bootloader_random_enable(void);
void bootloader_random_disable(void);
