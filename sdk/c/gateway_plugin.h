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
  size_t at = 0;
  for (; at + 8 <= count; at += 8) {
    uint64_t eight = gateway_input_load_u64(at);
    for (size_t byte = 0; byte < 8; byte++) into[at + byte] = (char)(eight >> (8 * byte));
  }
  for (; at < count; at++) into[at] = (char)gateway_input_load_u8(at);
  return length;
}

/* Answers the call. */
static inline void gateway_write_output(const char *json, size_t length) {
  uint64_t block = gateway_alloc(length);
  size_t at = 0;
  for (; at + 8 <= length; at += 8) {
    uint64_t eight = 0;
    for (size_t byte = 0; byte < 8; byte++) eight |= (uint64_t)(uint8_t)json[at + byte] << (8 * byte);
    gateway_store_u64(block + at, eight);
  }
  for (; at < length; at++) gateway_store_u8(block + at, (uint8_t)json[at]);
  gateway_output_set(block, length);
}

/*
 * Reading JSON as the gateway writes it: compact, each text in the one spelling of JSON.stringify, so that equal texts are
 * equal bytes. `end` is where `json` ends; places are offsets into it.
 */

/* The place behind a text that begins, at `at`, with a quotation mark. */
static inline size_t gateway_text_end(const char *json, size_t end, size_t at) {
  for (at++; at < end && json[at] != '"'; at++)
    if (json[at] == '\\') at++;
  return at < end ? at + 1 : end;
}

/* The place behind a value: where the next comma is, or what it is in ends. */
static inline size_t gateway_value_end(const char *json, size_t end, size_t at) {
  size_t depth = 0;
  while (at < end) {
    char c = json[at];
    if (depth == 0 && (c == ',' || c == '}' || c == ']')) break;
    if (c == '{' || c == '[') depth++;
    if (c == '}' || c == ']') depth--;
    at = c == '"' ? gateway_text_end(json, end, at) : at + 1;
  }
  return at;
}

/* Whether the bytes at a place are these. */
static inline int gateway_is_at(const char *json, size_t end, size_t at, const char *bytes, size_t length) {
  if (at > end || length > end - at) return 0;
  for (size_t index = 0; index < length; index++)
    if (json[at + index] != bytes[index]) return 0;
  return 1;
}

/* Where the value of an object's member begins. Traps, which blocks, where there is none. */
static inline size_t gateway_member(const char *json, size_t end, size_t object, const char *quoted, size_t length) {
  for (size_t at = object + 1; at < end && json[at] == '"'; at++) {
    size_t colon = gateway_text_end(json, end, at);
    if (colon - at == length && gateway_is_at(json, end, at, quoted, length)) return colon + 1;
    at = gateway_value_end(json, end, colon + 1);
    if (at >= end || json[at] == '}') break;
  }
  __builtin_trap();
}

/* The same, of a member whose name stands in the source. */
#define GATEWAY_MEMBER(json, end, object, name) gateway_member(json, end, object, "\"" name "\"", sizeof(name) + 1)

#endif
