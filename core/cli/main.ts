#!/usr/bin/env node
import * as module from "node:module";
import { pauseOptimizing } from "../store/optimizer.ts";

// Node 22 and later keep compiled code between runs; enabled before any other module is loaded.
(module as { readonly enableCompileCache?: () => unknown }).enableCompileCache?.();
// Most commands are done before optimized code pays.
pauseOptimizing(2_000);

const { runProgram } = await import("./program.ts");
await runProgram(process.argv);
