import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import { expect } from "chai";
import { type OpenAPIClient, OpenAPIClientAxios, type UnknownParamsObject } from "openapi-client-axios";
import { changes } from "../../../core/operation/operation.ts";
import { repositoryRoot } from "../../check/source-tree.ts";
import { AnswerCheck, type ApiDocument } from "../../support/api-schema.ts";
import type { Person } from "../../support/held-site.ts";
import { OperationWorld } from "../../support/operation-world.ts";
import { type AdminRouteId, operations, routes } from "../../support/route-table.ts";
import { send } from "../../support/wire.ts";

type Definition = NonNullable<ConstructorParameters<typeof OpenAPIClientAxios>[0]>["definition"];

describe("the OpenAPI document of the admin port", () => {
  let world: OperationWorld;
  let document: ApiDocument;
  let check: AnswerCheck;

  before(async () => {
    world = await OperationWorld.start();
    document = await world.ask<ApiDocument>("openapi.json", "vera");
    check = new AnswerCheck(document);
  });

  after(() => world.stop());

  /** A client made of the served document, and of nothing else. */
  function clientOf(headers: Record<string, string>): Promise<OpenAPIClient> {
    const api = new OpenAPIClientAxios({
      definition: structuredClone(document) as unknown as Exclude<Definition, string>,
      withServer: { url: world.url },
      axiosConfigDefaults: { headers, validateStatus: () => true },
    });
    return api.init();
  }

  it("is served to every key, and is the one that lies in the repository", async () => {
    const kept = await readFile(join(repositoryRoot, "core/admin/api/openapi.json"), "utf8");
    for (const person of ["adam", "rita", "vera", "foreign"] as const satisfies readonly Person[]) {
      expect(await world.ask("openapi.json", person), person).to.deep.equal(JSON.parse(kept));
    }
    expect((await send(world.url, { target: "/admin/v1/openapi.json" })).status).to.equal(401);
  });

  it("is valid by the schema of OpenAPI 3.1, and a document with a slip is not", async () => {
    // On several lines: the validator takes a text of one line for the name of a file.
    const isValid = async (text: ApiDocument): Promise<boolean> =>
      (await new Validator().validate(JSON.stringify(text, null, 1))).valid;
    expect(document.openapi).to.equal("3.1.0");
    expect(await isValid(document)).to.equal(true);
    const slip = { "/health": { get: { operationId: "getHealth", responses: { 200: { content: {} } } } } };
    expect(await isValid({ ...document, paths: slip })).to.equal(false);
  });

  it("tells of every route of the admin port, and of no other", () => {
    const told = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replace(/\{(\w+)\}/g, ":$1")}`),
    );
    const served = Object.values(routes)
      .filter(({ port }) => port === "admin")
      .map(({ method, path }) => `${method} ${path}`);
    expect(told).to.have.members(served);
    const names = Object.values(operations).map(({ name }) => name);
    expect(new Set(names).size).to.equal(names.length);
  });

  it("makes a client whose every call passes, and whose every answer is as the document says", async () => {
    const client = await clientOf({ authorization: `Bearer ${world.site.key("adam")}` });
    for (const [id, { id: named, query = {}, body }] of Object.entries(world.askings())) {
      const { method, path } = routes[id as AdminRouteId];
      const operation = operations[id as AdminRouteId];
      const { name, response } = operation;
      const about = (await named?.()) ?? "";
      const [part] = /:(\w+)/.exec(path)?.slice(1) ?? [];
      const parameters: UnknownParamsObject = {
        ...query,
        ...(part === undefined ? {} : { [part]: about }),
      };
      // Without a body the client would not say that it sends JSON.
      const asked = body?.() ?? (changes(operation) ? {} : undefined);
      const config = asked === undefined ? {} : { headers: { "content-type": "application/json" } };
      const { status, headers, data } = await (client[name] as NonNullable<(typeof client)[string]>)(
        parameters,
        asked,
        config,
      );
      expect([id, status, status >= 400 ? data : null]).to.deep.equal([id, response.status, null]);
      const place = path.replace(/:(\w+)/g, "{$1}");
      expect(check.faults(method, place, status, String(headers["content-type"]), data), id).to.deep.equal([]);
      // A page without items would fit whatever is said of them; plugins are told as policies are.
      if (id !== "admin.plugins" && Array.isArray((data as { items?: unknown }).items))
        expect(data.items, id).to.not.deep.equal([]);
    }
  });

  it("describes refusals as they come", async () => {
    const client = await clientOf({ "x-api-key": world.site.key("vera") });
    const id = `apr_${"0".repeat(32)}`;
    const refused = [
      ["getApproval", { id }, undefined, 404],
      ["approve", { id }, {}, 403],
      ["listApprovals", { limit: 501 }, undefined, 400],
    ] as const;
    for (const [name, parameters, body, expected] of refused) {
      const call = client[name] as NonNullable<(typeof client)[string]>;
      const { status, headers, data } = await call({ ...parameters }, body, {
        headers: { "content-type": "application/json" },
      });
      expect(status, name).to.equal(expected);
      const [path, methods] = Object.entries(document.paths).find(([, each]) =>
        Object.values(each).some(({ operationId }) => operationId === name),
      ) as [string, ApiDocument["paths"][string]];
      const [method = ""] = Object.entries(methods).find(([, { operationId }]) => operationId === name) ?? [];
      expect(check.faults(method, path, status, String(headers["content-type"]), data), name).to.deep.equal([]);
    }
  });

  it("would not fit an answer with a member more, or one less", async () => {
    const told = await world.ask<Record<string, unknown>>("evidence/checkpoint");
    const faults = (body: object): readonly string[] =>
      check.faults("GET", "/admin/v1/evidence/checkpoint", 200, "application/json", body);
    const { note: _, ...less } = told;
    expect([faults(told).length, faults(less).length, faults({ ...told, more: 1 }).length]).to.deep.equal([0, 1, 1]);
  });
});
