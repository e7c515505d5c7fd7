#!/usr/bin/env node
// `npx agent-governance-gateway`: the command `gateway`, which serves where no other command is named.
const [first] = process.argv.slice(2);
const isServe = first === undefined || (first.startsWith("-") && !["-h", "--help", "-V", "--version"].includes(first));
if (isServe) process.argv.splice(2, 0, "serve");
await import("./main.ts");
