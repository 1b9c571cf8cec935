// Cuts GitHub's description of its API down to the operations that wsmount uses,
// and what these refer to: 13 MB would take each test binary seconds.
//
//	node cut.mjs api.github.com.json > github-api.json
import { readFileSync } from "node:fs";

// An operation that wsmount uses is named here, or the tests' server knows none.
const operations = ["apps/create-installation-access-token", "pulls/list", "pulls/create"];

const whole = JSON.parse(readFileSync(process.argv[2], "utf8"));
const cut = { openapi: whole.openapi, info: whole.info, paths: {}, components: {} };

// keep copies what a value refers to, and what that refers to.
function keep(value) {
	if (value === null || typeof value !== "object") return;
	if (typeof value.$ref === "string") {
		const [, , kind, name] = value.$ref.split("/"); // #/components/KIND/NAME
		cut.components[kind] ??= {};
		if (name in cut.components[kind]) return;
		cut.components[kind][name] = whole.components[kind][name];
		keep(cut.components[kind][name]);
		return;
	}
	Object.values(value).forEach(keep);
}

const found = [];
for (const [path, methods] of Object.entries(whole.paths)) {
	for (const [method, operation] of Object.entries(methods)) {
		if (!operations.includes(operation.operationId)) continue;
		found.push(operation.operationId);
		cut.paths[path] = { ...cut.paths[path], [method]: operation };
		keep(operation);
	}
	if (cut.paths[path] && methods.parameters) keep((cut.paths[path].parameters = methods.parameters));
}
const missing = operations.filter((id) => !found.includes(id));
if (missing.length > 0) throw new Error(`the description has no ${missing}`);
process.stdout.write(JSON.stringify(cut, null, 1) + "\n");
