/* Blocks calls whose arguments hold the text that the settings name, in a value or in a member's name. */
#include "gateway_plugin.h"

/* A longer input is not judged, and so it is blocked. Memory is put back after each call: what is asked for here costs. */
static char input[1 << 16];

static const char abstain[] = "{\"decision\":\"abstain\",\"findings\":[]}";
static const char block[] =
    "{\"decision\":\"block\",\"findings\":[{\"rule\":\"{{name}}.text\",\"decision\":\"block\","
    "\"message\":\"the arguments hold a text that does not leave\",\"severity\":\"high\",\"risk\":80,"
    "\"pointer\":\"/arguments\"}]}";

/* Whether the text at one place holds the text at another. An escape, such as \n, is one step: its letter begins nothing. */
static int holds(size_t end, size_t text, size_t part) {
  const char *wanted = input + part + 1;
  size_t length = gateway_text_end(input, end, part) - part - 2;
  size_t behind = gateway_text_end(input, end, text) - 1;
  for (size_t at = text + 1; at < behind; at += input[at] == '\\' ? 2 : 1)
    if (gateway_is_at(input, behind, at, wanted, length)) return 1;
  return 0;
}

/* Whether a text in the value at a place, the names of members among them, holds the text at another. */
static int any_holds(size_t end, size_t value, size_t part) {
  size_t behind = gateway_value_end(input, end, value);
  for (size_t at = value; at < behind; at++) {
    if (input[at] != '"') continue;
    if (holds(end, at, part)) return 1;
    at = gateway_text_end(input, end, at) - 1;
  }
  return 0;
}

GATEWAY_EXPORT(evaluate) int32_t evaluate(void) {
  size_t end = gateway_read_input(input, sizeof(input));
  if (end > sizeof(input)) return 1;
  size_t action = GATEWAY_MEMBER(input, end, 0, "action");
  size_t phase = GATEWAY_MEMBER(input, end, action, "phase");
  size_t arguments = GATEWAY_MEMBER(input, end, action, "arguments");
  size_t part = GATEWAY_MEMBER(input, end, GATEWAY_MEMBER(input, end, 0, "settings"), "text");
  int blocked = gateway_is_at(input, end, phase, "\"input\"", 7) && any_holds(end, arguments, part);
  if (blocked) gateway_write_output(block, sizeof(block) - 1);
  else gateway_write_output(abstain, sizeof(abstain) - 1);
  return 0;
}
