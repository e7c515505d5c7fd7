import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { vendoredPackages } from "./vendor.ts";

/** A CycloneDX document of npm's, the members that are read here. */
export interface Bill {
  readonly metadata: { readonly component: Component };
  readonly components: readonly Component[];
  readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
}

interface Component {
  readonly "bom-ref": string;
  readonly name: string;
  readonly scope?: string;
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
}

const development = "cdx:npm:package:development";

/**
 * Returns the bill of a package from that of its repository: what only contributors need is left out, and the packages of which
 * files are copied into the archive are required.
 */
export function packageBill<Whole extends Bill>(bill: Whole, name: string, vendored: readonly string[]): Whole {
  const components = bill.components.flatMap((component): readonly Component[] => {
    const { properties = [], ...rest } = component;
    const others = properties.filter((property) => property.name !== development);
    if (vendored.includes(component.name)) return [{ ...rest, scope: "required", properties: others }];
    return others.length === properties.length ? [component] : [];
  });
  const missing = vendored.filter((each) => !components.some((component) => component.name === each));
  if (missing.length > 0)
    throw new Error(`expected \`${missing.join("`, `")}\` among what npm lists, got no such package`);
  const { component } = bill.metadata;
  const refs = new Set([component["bom-ref"], ...components.map((each) => each["bom-ref"])]);
  const dependencies = bill.dependencies
    .filter(({ ref }) => refs.has(ref))
    .map((each) => ({ ...each, dependsOn: each.dependsOn.filter((ref) => refs.has(ref)) }));
  return { ...bill, metadata: { ...bill.metadata, component: { ...component, name } }, components, dependencies };
}

/** Prints the bill of materials of the package that this repository makes, as CycloneDX. */
async function printBill(): Promise<void> {
  const root = new URL("../../", import.meta.url);
  const { name } = JSON.parse(await readFile(new URL("package.json", root), "utf8"));
  const args = ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only"];
  const { stdout } = await promisify(execFile)("npm", args, { cwd: root, maxBuffer: 67_108_864 });
  const bill = packageBill(
    JSON.parse(stdout) as Bill,
    name,
    vendoredPackages.map((each) => each.name),
  );
  process.stdout.write(`${JSON.stringify(bill, null, 2)}\n`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await printBill();
