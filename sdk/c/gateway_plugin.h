/*
 * gateway-plugin/1, for plugins in C: what a module imports from the gateway, and what it exports. Needs no C library.
 *
 *     clang --target=wasm32 -O2 -ffreestanding -nostdlib -Wl,--no-entry -I<sdk>/c plugin.c -o plugin.wasm
 *
 * The gateway calls `evaluate` once for each action. The input is `{"settings": …, "action": …}`, compact JSON in UTF-8;
 * the output is a verdict, as contract/verdict.schema.json says. `evaluate` answers 0; anything else blocks the action, as
 * does a trap. A module may export `validate_settings` too: asked once, at load, about `{"settings": …}`, it answers
 * `{"valid": true}`, or `{"valid": false, "message": "…"}`, which refuses the load. Memory and globals are put back after
 * each call: nothing of one action is seen by the next.
 */
#ifndef GATEWAY_PLUGIN_H
#define GATEWAY_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#define GATEWAY_IMPORT(name) __attribute__((import_module("extism:host/env"), import_name(#name)))
#define GATEWAY_EXPORT(name) __attribute__((export_name(#name)))

/* The input: its bytes, from offset 0. A read beyond its end blocks. */
GATEWAY_IMPORT(input_length) uint64_t gateway_input_length(void);
GATEWAY_IMPORT(input_load_u8) uint32_t gateway_input_load_u8(uint64_t offset);
GATEWAY_IMPORT(input_load_u64) uint64_t gateway_input_load_u64(uint64_t offset);

/* Memory that the gateway lends for one call: 1 MiB in all, in at most 4,096 blocks. Offsets are the gateway's own. */
GATEWAY_IMPORT(alloc) uint64_t gateway_alloc(uint64_t length);
GATEWAY_IMPORT(length) uint64_t gateway_length(uint64_t block);
GATEWAY_IMPORT(load_u8) uint32_t gateway_load_u8(uint64_t offset);
GATEWAY_IMPORT(load_u64) uint64_t gateway_load_u64(uint64_t offset);
GATEWAY_IMPORT(store_u8) void gateway_store_u8(uint64_t offset, uint32_t value);
GATEWAY_IMPORT(store_u64) void gateway_store_u64(uint64_t offset, uint64_t value);

/* The output: a span of lent memory, at most 262,144 bytes. */
GATEWAY_IMPORT(output_set) void gateway_output_set(uint64_t offset, uint64_t length);

/* Gives up: the action is blocked. The message is a block of lent memory, and is not kept. */
GATEWAY_IMPORT(error_set) void gateway_error_set(uint64_t block);

/* Copies the input, as much as there is room for; answers with its whole length. */
static inline size_t gateway_read_input(char *into, size_t room) {
  size_t length = (size_t)gateway_input_length();
  size_t count = length < room ? length : room;
  for (size_t at = 0; at < count; at++) into[at] = (char)gateway_input_load_u8(at);
  return length;
}

/* Answers the call. */
static inline void gateway_write_output(const char *json, size_t length) {
  uint64_t block = gateway_alloc(length);
  for (size_t at = 0; at < length; at++) gateway_store_u8(block + at, (uint8_t)json[at]);
  gateway_output_set(block, length);
}

#endif
