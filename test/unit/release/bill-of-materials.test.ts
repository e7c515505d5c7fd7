import { expect } from "chai";
import { type Bill, packageBill } from "../../../release/bill-of-materials.ts";

const forContributors = [{ name: "cdx:npm:package:development", value: "true" }];

const bill: Bill = {
  metadata: { component: { "bom-ref": "gateway@1.0.0", name: "clone" } },
  components: [
    { "bom-ref": "koa@3.3.0", name: "koa", scope: "required", properties: [] },
    { "bom-ref": "cedar@4.0.0", name: "cedar", scope: "optional", properties: [] },
    { "bom-ref": "mocha@12.0.0", name: "mocha", scope: "optional", properties: forContributors },
    { "bom-ref": "grammar@1.0.0", name: "grammar", scope: "optional", properties: forContributors },
  ],
  dependencies: [
    { ref: "gateway@1.0.0", dependsOn: ["koa@3.3.0", "mocha@12.0.0"] },
    { ref: "mocha@12.0.0", dependsOn: ["koa@3.3.0"] },
  ],
};

describe("packageBill(bill, name, vendored)", () => {
  it("names what is installed and what is copied into the archive, and no package of a contributor", () => {
    const { metadata, components, dependencies } = packageBill(bill, "gateway", ["grammar"]);
    expect(metadata.component.name).to.equal("gateway");
    expect(components.map(({ name, scope }) => `${name} ${scope}`)).to.deep.equal([
      "koa required",
      "cedar optional",
      "grammar required",
    ]);
    expect(dependencies).to.deep.equal([{ ref: "gateway@1.0.0", dependsOn: ["koa@3.3.0"] }]);
  });

  it("refuses a bill without what is copied", () => {
    expect(() => packageBill(bill, "gateway", ["tokenizer"])).to.throw("expected `tokenizer` among what npm lists");
  });
});
