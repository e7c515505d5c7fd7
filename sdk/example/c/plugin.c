/* Blocks calls of the tool that the settings name. */
#include "gateway_plugin.h"

/* A longer input is not judged, and so it is blocked. Memory is put back after each call: what is asked for here costs. */
static char input[1 << 16];
static size_t end;

static const char abstain[] = "{\"decision\":\"abstain\",\"findings\":[]}";
static const char block[] =
    "{\"decision\":\"block\",\"findings\":[{\"rule\":\"no-tool.named\",\"decision\":\"block\","
    "\"message\":\"this tool is not to be used\",\"severity\":\"high\",\"risk\":80,\"pointer\":\"/tool\"}]}";

/* The place behind a JSON text that begins at a quotation mark. */
static size_t behind_text(size_t at) {
  for (at++; at < end && input[at] != '"'; at++)
    if (input[at] == '\\') at++;
  return at + 1;
}

/* The place behind a JSON value: where the next comma is, or what it is in ends. */
static size_t behind_value(size_t at) {
  size_t depth = 0;
  while (at < end) {
    char c = input[at];
    if (depth == 0 && (c == ',' || c == '}' || c == ']')) break;
    if (c == '{' || c == '[') depth++;
    if (c == '}' || c == ']') depth--;
    at = c == '"' ? behind_text(at) : at + 1;
  }
  return at;
}

static int is_same(size_t one, const char *other, size_t length) {
  if (one + length > end) return 0;
  for (size_t at = 0; at < length; at++)
    if (input[one + at] != other[at]) return 0;
  return 1;
}

/* Where the value of a member begins, or traps: the gateway's input has the members that are asked for here. */
static size_t member(size_t object, const char *quoted, size_t length) {
  for (size_t at = object + 1; at < end && input[at] == '"'; at++) {
    size_t colon = behind_text(at);
    if (colon - at == length && is_same(at, quoted, length)) return colon + 1;
    at = behind_value(colon + 1);
    if (input[at] == '}') break;
  }
  __builtin_trap();
}

#define MEMBER(object, name) member(object, "\"" name "\"", sizeof("\"" name "\"") - 1)

GATEWAY_EXPORT(evaluate) int32_t evaluate(void) {
  end = gateway_read_input(input, sizeof(input));
  if (end > sizeof(input)) return 1;
  size_t named = MEMBER(MEMBER(0, "settings"), "tool");
  size_t called = MEMBER(MEMBER(0, "action"), "tool");
  size_t length = behind_text(called) - called;
  /* Both were written by the gateway, in the same way: equal texts are equal bytes. */
  int blocked = behind_text(named) - named == length && is_same(called, input + named, length);
  if (blocked) gateway_write_output(block, sizeof(block) - 1);
  else gateway_write_output(abstain, sizeof(abstain) - 1);
  return 0;
}
