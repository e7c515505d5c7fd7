#!/bin/sh
# Builds plugin.wasm with clang and wasm-ld, and puts its digest into plugin.yaml. SDK is where the SDK lies.
set -eu
for tool in clang wasm-ld; do
  command -v "$tool" > /dev/null || { echo "expected \`$tool\`, found none: on Debian, apt-get install clang lld" >&2; exit 1; }
done
cd "$(dirname "$0")"
clang --target=wasm32 -O2 -Wall -Wextra -Werror -ffreestanding -nostdlib -Wl,--no-entry \
  -I"${SDK:-../..}/c" plugin.c -o plugin.wasm
grep -v '^digest:' plugin.yaml > manifest.tmp
echo "digest: sha256:$(sha256sum plugin.wasm | cut -d ' ' -f 1)" >> manifest.tmp
mv manifest.tmp plugin.yaml
