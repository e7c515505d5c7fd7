#!/usr/bin/env node
import * as module from "node:module";

// Node 22 and later keep compiled code between runs; enabled before any other module is loaded.
(module as { readonly enableCompileCache?: () => unknown }).enableCompileCache?.();

const { runProgram } = await import("./program.ts");
await runProgram(process.argv);
