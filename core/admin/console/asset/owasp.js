const numbered = (prefix, suffix, titles) =>
  titles.map((title, at) => [`OWASP-${prefix}${String(at + 1).padStart(2, "0")}${suffix}`, title]);

/** The lists of OWASP that rules refer to: the reference as rules write it, and the title of the item. */
export const owaspLists = [
  {
    name: "Agentic applications (2026)",
    items: numbered("ASI", "", [
      "Agent goal hijack",
      "Tool misuse and exploitation",
      "Identity and privilege abuse",
      "Agentic supply chain vulnerabilities",
      "Unexpected code execution",
      "Memory and context poisoning",
      "Insecure communication between agents",
      "Cascading failures",
      "Exploitation of people's trust in agents",
      "Rogue agents",
    ]),
  },
  {
    name: "Large language models (2025)",
    items: numbered("LLM", "-2025", [
      "Prompt injection",
      "Sensitive information disclosure",
      "Supply chain",
      "Data and model poisoning",
      "Improper output handling",
      "Excessive agency",
      "System prompt leakage",
      "Vector and embedding weaknesses",
      "Misinformation",
      "Unbounded consumption",
    ]),
  },
  {
    name: "Model Context Protocol (2025)",
    items: numbered("MCP", "", [
      "Token mismanagement and secret exposure",
      "Privilege escalation by scope creep",
      "Tool poisoning",
      "Supply chain attacks and dependency tampering",
      "Command injection and execution",
      "Intent flow subversion",
      "Insufficient authentication and authorization",
      "Lack of audit and telemetry",
      "Shadow MCP servers",
      "Context injection and over-sharing",
    ]),
  },
];
