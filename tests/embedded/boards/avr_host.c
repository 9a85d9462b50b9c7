/* Runs an ELF file on an emulated AVR: avr_host MCU PROGRAM.elf < input > output */
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>
#include <stdio.h>
#include <unistd.h>

/* Data addresses of GPIOR0 to GPIOR2 on ATmegas. */
enum { FROM = 0x3e, TO = 0x4a, CALL = 0x4b };

static uint8_t count[4];
static int left, ended;
static FILE *out;

static uint8_t give(struct avr_t *avr, avr_io_addr_t address, void *unused)
{
  int c;
  (void)avr, (void)address, (void)unused;
  if (left)
    return count[4 - left--];
  c = getchar();
  return (uint8_t)(c == EOF ? 0 : c);
}

static void take(struct avr_t *avr, avr_io_addr_t address, uint8_t value, void *unused)
{
  (void)avr, (void)address, (void)unused;
  putc(value, out);
}

static void call(struct avr_t *avr, avr_io_addr_t address, uint8_t value, void *unused)
{
  (void)unused;
  if (value == 1) {
    const int c = getchar();
    if (c != EOF)
      ungetc(c, stdin);
    avr->data[address] = c != EOF;
  } else if (value == 3) {
    ended = 1;
  } else {
    int k;
    for (k = 0; k < 4; ++k)
      count[k] = (uint8_t)(avr->cycle >> 8 * k);
    left = 4;
  }
}

int main(int argc, char **argv)
{
  elf_firmware_t firmware = {{0}};
  avr_t *avr;
  int state;
  /* simavr writes what it does to the standard output. */
  out = fdopen(dup(1), "wb");
  if (!out || !freopen("/dev/null", "w", stdout))
    return 2;
  if (argc != 3 || elf_read_firmware(argv[2], &firmware) || !(avr = avr_make_mcu_by_name(argv[1])))
    return 2;
  avr_init(avr);
  avr->log = LOG_NONE;
  firmware.frequency = 16000000;
  avr_load_firmware(avr, &firmware);
  avr_register_io_read(avr, FROM, give, NULL);
  avr_register_io_write(avr, TO, take, NULL);
  avr_register_io_write(avr, CALL, call, NULL);
  do
    state = avr_run(avr);
  while (!ended && state != cpu_Done && state != cpu_Crashed);
  fflush(out);
  return state == cpu_Crashed;
}
