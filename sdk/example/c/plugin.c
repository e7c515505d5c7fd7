/* Blocks calls of the tool that the settings name. */
#include "gateway_plugin.h"

/* A longer input is not judged, and so it is blocked. Memory is put back after each call: what is asked for here costs. */
static char input[1 << 16];

static const char abstain[] = "{\"decision\":\"abstain\",\"findings\":[]}";
static const char block[] =
    "{\"decision\":\"block\",\"findings\":[{\"rule\":\"no-tool.named\",\"decision\":\"block\","
    "\"message\":\"this tool is not to be used\",\"severity\":\"high\",\"risk\":80,\"pointer\":\"/tool\"}]}";

GATEWAY_EXPORT(evaluate) int32_t evaluate(void) {
  size_t end = gateway_read_input(input, sizeof(input));
  if (end > sizeof(input)) return 1;
  size_t named = GATEWAY_MEMBER(input, end, GATEWAY_MEMBER(input, end, 0, "settings"), "tool");
  size_t called = GATEWAY_MEMBER(input, end, GATEWAY_MEMBER(input, end, 0, "action"), "tool");
  size_t length = gateway_text_end(input, end, called) - called;
  int blocked =
      gateway_text_end(input, end, named) - named == length && gateway_is_at(input, end, called, input + named, length);
  if (blocked) gateway_write_output(block, sizeof(block) - 1);
  else gateway_write_output(abstain, sizeof(abstain) - 1);
  return 0;
}
