#!/bin/sh
# Compilers and emulators for exported C, from Debian, if this is root on a Debian. Without them the tests of tests/embedded
# are skipped, each with its reason.
set -eu
packages="gcc gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm gcc-riscv64-unknown-elf
  picolibc-riscv64-unknown-elf qemu-system-misc gcc-avr avr-libc libsimavr-dev libelf-dev
  gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user"
command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || exit 0
# shellcheck disable=SC2086
missing=$(dpkg-query -W -f '${Status} ${Package}\n' $packages 2>&1 | grep -vc '^install ok installed' || true)
if [ "$missing" -gt 0 ] && [ "$(id -u)" -eq 0 ]; then
    apt-get update -qq
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends $packages
fi
