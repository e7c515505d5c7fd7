/** A span as a collector reads it. */
export interface ToldSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for a root. */
  readonly parentSpanId: string;
  readonly name: string;
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly isError: boolean;
  /** Of the resource. */
  readonly service: unknown;
}

/** A field of a protobuf message: its bytes, or its number. */
type Fields = ReadonlyMap<number, readonly (Buffer | bigint)[]>;

/** Reads `ExportTraceServiceRequest`, by the field numbers of opentelemetry-proto and no library of ours. */
export function readProtobufSpans(body: Buffer): readonly ToldSpan[] {
  return messagesIn(fieldsOf(body), 1).flatMap((resourceSpans) => {
    const [resource] = messagesIn(resourceSpans, 1);
    const service = resource === undefined ? undefined : attributesOf(resource, 1)["service.name"];
    const scopes = messagesIn(resourceSpans, 2);
    return scopes.flatMap((scope) => messagesIn(scope, 2).map((span) => spanOf(span, service)));
  });
}

interface JsonValue {
  readonly stringValue?: string;
  readonly intValue?: string | number;
  readonly doubleValue?: number;
  readonly boolValue?: boolean;
  readonly arrayValue?: { readonly values?: readonly JsonValue[] };
}
type JsonAttributes = readonly { readonly key: string; readonly value: JsonValue }[];
interface JsonSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes?: JsonAttributes;
  readonly status?: { readonly code?: number };
}
interface JsonTraces {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: JsonAttributes };
    readonly scopeSpans: readonly { readonly spans: readonly JsonSpan[] }[];
  }[];
}

/** The same of OTLP's JSON. */
export function readJsonSpans(body: Buffer): readonly ToldSpan[] {
  const { resourceSpans } = JSON.parse(body.toString("utf8")) as JsonTraces;
  return resourceSpans.flatMap(({ resource, scopeSpans }) => {
    const service = jsonAttributes(resource.attributes)["service.name"];
    return scopeSpans.flatMap(({ spans }) =>
      spans.map(({ attributes, status, parentSpanId = "", ...span }) => ({
        ...span,
        parentSpanId,
        attributes: jsonAttributes(attributes ?? []),
        isError: status?.code === 2,
        service,
      })),
    );
  });
}

function jsonAttributes(attributes: JsonAttributes): Record<string, unknown> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, jsonValue(value)]));
}

function jsonValue({ stringValue, intValue, doubleValue, boolValue, arrayValue }: JsonValue): unknown {
  if (arrayValue !== undefined) return (arrayValue.values ?? []).map(jsonValue);
  return stringValue ?? doubleValue ?? boolValue ?? Number(intValue);
}

function spanOf(span: Fields, service: unknown): ToldSpan {
  const [status] = messagesIn(span, 15);
  return {
    traceId: bytesAt(span, 1).toString("hex"),
    spanId: bytesAt(span, 2).toString("hex"),
    parentSpanId: bytesAt(span, 4).toString("hex"),
    name: bytesAt(span, 5).toString("utf8"),
    kind: numberAt(span, 6),
    attributes: attributesOf(span, 9),
    isError: status !== undefined && numberAt(status, 3) === 2,
    service,
  };
}

/** `KeyValue { key = 1; value = 2 }`. */
export function attributesOf(message: Fields, field: number): Record<string, unknown> {
  return Object.fromEntries(
    messagesIn(message, field).map((pair) => [bytesAt(pair, 1).toString("utf8"), anyValue(fieldsOf(bytesAt(pair, 2)))]),
  );
}

/** `AnyValue`: 1 string, 2 bool, 3 int, 4 double, 5 array. */
function anyValue(value: Fields): unknown {
  if (value.has(5)) return messagesIn(value, 5).flatMap((array) => messagesIn(array, 1).map(anyValue));
  if (value.has(4)) return doubleAt(value, 4);
  if (value.has(3)) return numberAt(value, 3);
  if (value.has(2)) return numberAt(value, 2) === 1;
  return bytesAt(value, 1).toString("utf8");
}

export function messagesIn(message: Fields, field: number): readonly Fields[] {
  return (message.get(field) ?? []).map((value) => fieldsOf(value as Buffer));
}

export function bytesAt(message: Fields, field: number): Buffer {
  return (message.get(field)?.at(-1) as Buffer | undefined) ?? Buffer.alloc(0);
}

export function numberAt(message: Fields, field: number): number {
  return Number(message.get(field)?.at(-1) ?? 0n);
}

/** A `double`, whose eight bytes are read as one number. */
export function doubleAt(message: Fields, field: number): number {
  const bits = Buffer.alloc(8);
  bits.writeBigUInt64LE((message.get(field)?.at(-1) as bigint | undefined) ?? 0n);
  return bits.readDoubleLE();
}

/** The fields of a message, each with its values in order. Throws for what is no message. */
export function fieldsOf(bytes: Buffer): Fields {
  const fields = new Map<number, (Buffer | bigint)[]>();
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes.readUInt8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (count: number): Buffer => {
    if (at + count > bytes.length) throw new Error("otlp: the message is cut off");
    at += count;
    return bytes.subarray(at - count, at);
  };
  while (at < bytes.length) {
    const tag = Number(varint());
    const kind = tag & 7;
    let value: Buffer | bigint;
    if (kind === 0) value = varint();
    else if (kind === 1) value = take(8).readBigUInt64LE();
    else if (kind === 2) value = take(Number(varint()));
    else if (kind === 5) value = BigInt(take(4).readUInt32LE());
    else throw new Error(`otlp: unknown wire type ${kind}`);
    const field = tag >>> 3;
    fields.set(field, [...(fields.get(field) ?? []), value]);
  }
  return fields;
}
