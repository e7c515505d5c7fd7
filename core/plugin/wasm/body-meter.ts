import { type BinaryReader, BinaryWriter, checkBound, hex } from "./binary.ts";
import { chargeByLength, chargeFuel, enterFrame, indexed, leaveFrame, type MeterGlobals } from "./metered-code.ts";
import { type Body, type FunctionType, type ParsedModule, readIndex, readValueType } from "./module.ts";
import { bulk, type Opcode, op, opcodeOf, prefixedOpcodeOf } from "./opcode.ts";
import { isStore, scratchTypes, writeBulkMark, writeMarkedStore } from "./write-mark.ts";

const maxBlocks = 1_024;
/**
 * The largest number of functions: the engine recompiles hot ones in background threads, which takes seconds with tens
 * of thousands.
 */
const maxLoops = 4_096;
/** The operand stack's limit: with the locals it bounds the engine's stack frame. */
const maxOperands = 1_024;
/** The price of one call of a host function. */
const hostCallCost = 192;
/** The price of a new page: the system allocates it when it is first written to. */
const pageCharge = { shift: 0, price: 32_768 };
const byteCharge = { shift: 3, price: 1 };
/** One more unit at each charge for each 64 KiB of a metered function. */
const lengthShift = 16;

/** Byte offsets of one instruction: in the metered code and in the original module. */
export interface Origin {
  metered: number;
  readonly original: number;
}

/** A charge: fuel taken at one position for the instructions that follow it. */
interface Charge {
  readonly place: number;
  cost: number;
}

interface Block {
  readonly kind: "function" | "block" | "loop" | "if";
  readonly type: FunctionType;
  /** The operands below those of the block. */
  readonly base: number;
  /** The charge of the code around the block. */
  readonly around: Charge;
  /** True where a branch may lead to its end or an arm may leave it. */
  forked: boolean;
}

/**
 * Rewrites one function so that it pays for its work.
 *
 * INVARIANT: between two executions of a charge, each instruction charged there runs at most once, and never before the
 * first: charges stand at the function's start, each loop's, both arms of an `if`, and where paths part or meet. The
 * code between forks is charged at once, whichever way out of it is taken.
 */
export class BodyMeter {
  readonly #module: ParsedModule;
  readonly #body: Body;
  readonly #type: FunctionType;
  readonly #globals: MeterGlobals;
  readonly #origins: Origin[] | undefined;
  readonly #out = new BinaryWriter();
  readonly #blocks: Block[] = [];
  readonly #charges: Charge[] = [];
  readonly #frames: number[] = [];
  readonly #locals: number;
  #charge: Charge;
  /** True where an instruction grows the memory. */
  grows = false;
  /** True where an instruction writes to the memory. */
  #writes = false;
  #loops = 0;
  #dead = false;
  #height = 0;
  #highest = 0;

  constructor(module: ParsedModule, body: Body, type: FunctionType, globals: MeterGlobals, origins?: Origin[]) {
    this.#origins = origins;
    this.#module = module;
    this.#body = body;
    this.#type = type;
    this.#globals = globals;
    this.#locals = type.params.length + body.localCount;
    this.#charge = this.#startCharge();
  }

  /** Meters the function's locals and code. Throws ModuleFault at an unknown instruction. */
  meter(): Uint8Array {
    this.#open("function", { params: [], results: this.#type.results });
    // Locals are zeroed when the function is entered.
    this.#charge.cost += 2 + this.#locals;
    while (this.#blocks.length > 0) this.#step();
    this.#body.code.expectEnd("a function");
    // Code that exceeds the processor's caches is slow everywhere.
    const length = this.#out.length >> lengthShift;
    for (const { place, cost } of this.#charges) this.#out.fill(place, cost + length);
    // A slot takes eight bytes of the engine's stack; doubled, and with a surcharge for the frame.
    for (const place of this.#frames) this.#out.fill(place, 128 + 16 * (this.#locals + this.#highest));
    return this.#withScratch();
  }

  /** Bytes of code alone; `Origin.metered` counts from the first of them. */
  get codeLength(): number {
    return this.#out.length;
  }

  /** The locals after the function's own are used by the code that is inserted. */
  #withScratch(): Uint8Array {
    const writer = new BinaryWriter();
    const used = this.#writes ? scratchTypes : scratchTypes.slice(0, 1);
    writer.u32(this.#body.localGroups + used.length);
    writer.write(this.#body.locals);
    for (const type of used) writer.write([1, type]);
    writer.write(this.#out.bytes);
    return writer.bytes;
  }

  get #block(): Block {
    const block = this.#blocks.at(-1);
    if (block === undefined) throw new TypeError("BodyMeter: expected to be inside a function");
    return block;
  }

  #step(): void {
    const { code } = this.#body;
    const from = code.at;
    this.#origins?.push({ metered: this.#out.length, original: from });
    const first = code.byte();
    const second = first === op.prefix ? code.u32() : undefined;
    const opcode = second === undefined ? opcodeOf(first) : prefixedOpcodeOf(second);
    if (opcode === undefined) throw code.fault("a known instruction", [first, second ?? []].flat().map(hex).join(" "));
    this.#charge.cost += opcode.cost;
    this.#move(-opcode.pops);
    if (first === op.end || first === op.else) this.#close(first);
    else if (opcode.immediate === "block") this.#openBlock(first, from);
    else if (opcode.immediate === "function") this.#call(from);
    else if (opcode.immediate === "indirect") this.#callIndirect();
    else this.#copy(opcode, first, second, from);
  }

  #copy(opcode: Opcode, first: number, second: number | undefined, from: number): void {
    const { code } = this.#body;
    const scope = { labels: this.#blocks.length, locals: this.#locals, globals: this.#module.globals.length };
    for (const label of readImmediate(code, opcode, scope)) this.#fork(label);
    if (second !== undefined && second >= bulk.copy) {
      chargeByLength(this.#out, this.#globals, this.#locals, byteCharge);
      writeBulkMark(this.#out, this.#globals, this.#locals);
      this.#writes = true;
      // Indices of memory 0 may be written long.
      this.#out.write(second === bulk.copy ? [op.prefix, second, 0, 0] : [op.prefix, second, 0]);
    } else if (first === op.memoryGrow) {
      chargeByLength(this.#out, this.#globals, this.#locals, pageCharge);
      indexed(this.#out, op.call, this.#globals.grow);
      this.grows = true;
    } else if (isStore(first)) {
      writeMarkedStore(this.#out, this.#globals, this.#locals, code.since(from));
      this.#writes = true;
    } else if (first === op.memorySize) indexed(this.#out, op.globalGet, this.#globals.pages);
    else this.#out.write(code.since(from));
    this.#move(opcode.pushes);
    if (first === op.unreachable || first === op.br || first === op.brTable || first === op.return) this.#leave();
    else if (first === op.brIf) this.#charge = this.#startCharge();
  }

  /** Marks code that is unreachable until the block ends; its operands do not exist. */
  #leave(): void {
    this.#dead = true;
    this.#height = this.#block.base + this.#block.type.params.length;
  }

  /** Branches to the label that many blocks out. */
  #fork(depth: number): void {
    const target = this.#blocks[this.#blocks.length - 1 - depth];
    if (target !== undefined) target.forked = true;
  }

  #call(from: number): void {
    const { code } = this.#body;
    const index = readIndex(code, this.#module.functions.length, "a function");
    if (index < this.#module.imports.length) this.#charge.cost += hostCallCost;
    this.#wrapCall(code.since(from), this.#module.types[this.#module.functions[index] ?? -1]);
  }

  #callIndirect(): void {
    const { code } = this.#body;
    const type = readIndex(code, this.#module.types.length, "a type");
    readIndex(code, 1, "a table");
    const instruction = new BinaryWriter();
    indexed(instruction, op.callIndirect, type);
    instruction.write([0]);
    this.#wrapCall(instruction.bytes, this.#module.types[type]);
  }

  #wrapCall(instruction: Uint8Array, type: FunctionType | undefined): void {
    this.#frames.push(enterFrame(this.#out, this.#globals));
    this.#out.write(instruction);
    this.#frames.push(leaveFrame(this.#out, this.#globals));
    this.#move(-(type?.params.length ?? 0));
    this.#move(type?.results.length ?? 0);
  }

  #openBlock(first: number, from: number): void {
    const { code } = this.#body;
    const type = this.#readBlockType();
    this.#out.write(code.since(from));
    this.#open(first === op.block ? "block" : first === op.loop ? "loop" : "if", type);
    if (first === op.loop) checkBound("loops in a function", ++this.#loops, maxLoops);
    if (first !== op.block) this.#charge = this.#startCharge();
  }

  #readBlockType(): FunctionType {
    const index = this.#body.code.signed(33);
    // A negative byte: no result, or one value.
    if (index === -64) return { params: [], results: [] };
    if (index < 0 && index >= -4) return { params: [], results: [128 + index] };
    const type = index < 0 ? undefined : this.#module.types[index];
    if (type === undefined) throw this.#body.code.fault("a block type", String(index));
    return type;
  }

  #startCharge(): Charge {
    const charge = { place: chargeFuel(this.#out, this.#globals), cost: 1 };
    this.#charges.push(charge);
    return charge;
  }

  #open(kind: Block["kind"], type: FunctionType): void {
    checkBound("blocks inside one another", this.#blocks.length + 1, maxBlocks);
    const base = Math.max(0, this.#height - type.params.length);
    this.#blocks.push({ kind, type, base, around: this.#charge, forked: false });
  }

  #close(first: number): void {
    this.#out.write([first]);
    const block = this.#block;
    this.#height = block.base;
    if (block.kind === "if" && this.#dead) block.forked = true;
    this.#dead = false;
    if (first === op.end) this.#blocks.pop();
    this.#move(first === op.end ? block.type.results.length : block.type.params.length);
    if (this.#blocks.length > 0) this.#chargeAfter(first, block);
  }

  #chargeAfter(first: number, { kind, around, forked }: Block): void {
    if (first === op.else || (forked && kind !== "loop")) this.#charge = this.#startCharge();
    // A block that nothing leaves early keeps the charge at its end; others begin a new one.
    else if (kind !== "block") this.#charge = around;
  }

  #move(by: number): void {
    this.#height = Math.max(0, this.#height + by);
    this.#highest = Math.max(this.#highest, checkBound("operands on the stack", this.#height, maxOperands));
  }
}

/** The number of items of each kind that an instruction may refer to. */
interface Scope {
  readonly labels: number;
  readonly locals: number;
  readonly globals: number;
}

const maxLabels = 4_096;

const none: readonly number[] = [];

/** Reads an instruction's immediates and returns the labels it names. Throws ModuleFault for an index out of range. */
function readImmediate(code: BinaryReader, opcode: Opcode, scope: Scope): readonly number[] {
  if (opcode.immediate === "label") return [readIndex(code, scope.labels, "a label")];
  if (opcode.immediate === "labels") return readLabels(code, scope.labels);
  skipImmediate(code, opcode, scope);
  return none;
}

function skipImmediate(code: BinaryReader, { immediate, width }: Opcode, scope: Scope): void {
  if (immediate === "local") readIndex(code, scope.locals, "a local");
  else if (immediate === "global") readIndex(code, scope.globals, "a global");
  else if (immediate === "access") skipAccess(code, width);
  else if (immediate === "memory") readIndex(code, 1, "a memory");
  else if (immediate === "memories") for (const _ of "12") readIndex(code, 1, "a memory");
  else if (immediate === "i32") code.signed(32);
  else if (immediate === "i64") code.signed(64);
  else if (immediate === "f32") code.take(4);
  else if (immediate === "f64") code.take(8);
  else if (immediate === "select") {
    code.expect(1, "one type");
    readValueType(code);
  }
}

/** Reads the labels of a branch table, the default last. */
function readLabels(code: BinaryReader, labels: number): readonly number[] {
  const count = code.count("labels", maxLabels);
  return Array.from({ length: count + 1 }, () => readIndex(code, labels, "a label"));
}

function skipAccess(code: BinaryReader, width: number): void {
  const alignment = code.u32();
  if (alignment > width) throw code.fault(`an alignment of at most ${width}`, String(alignment));
  code.u32();
}
