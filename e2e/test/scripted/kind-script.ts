import type { ReportFile } from '@switchyard/conformance';
import { millis } from '@switchyard/core';
import type { ScriptedCall } from './scripted-programs.ts';

/** Tests that upstream's scripted image has. */
export const upstreamTests = {
  passes: '[sig-network] Services should serve a basic endpoint from pods [Conformance]',
  fails: '[sig-network] Conntrack should drop INVALID conntrack entries [Privileged]',
  skipsItself: '[sig-network] Traffic Distribution should prefer the zone of the client',
  isSkipped: '[sig-network] Services should work after restarting kube-proxy [Disruptive]',
  isOutside: '[sig-storage] Volumes should be mountable',
  // Every beginning of a name in the matrix has a test.
  granular: '[sig-network] Networking Granular Checks: Services should function for pod-Service: http',
  loadBalancer:
    '[sig-network] LoadBalancers [Feature:LoadBalancer] should be able to change the type and ports of a TCP service [Slow]',
  kubeProxy: '[sig-network] KubeProxy should set TCP CLOSE_WAIT timeout [Privileged]',
} as const;

const testList = `The following spec names can be used with 'ginkgo run --focus/skip':
${Object.values(upstreamTests)
  .map((name, index) => `    test/e2e/network/some.go:${index + 10}: ${name}\n`)
  .join('')}
`;

/** How upstream's tests end. */
export interface UpstreamEnd {
  readonly isFailing?: boolean;
  /** The run ended before its last test. */
  readonly isCut?: boolean;
}

function junit({ isFailing = false, isCut = false }: UpstreamEnd): string {
  const skip = '<skipped message="skipped - fewer than 3 zones"></skipped>';
  const failure = '<failure type="failed">expected &lt;bool&gt;: true\n  at line 7</failure>';
  const line = (name: string, status: string, body: string): string =>
    `<testcase name="[It] ${name}" classname="Kubernetes e2e suite" status="${status}" time="1.5">${body}</testcase>`;
  return `<testsuites><testsuite name="Kubernetes e2e suite">
${[upstreamTests.passes, upstreamTests.granular, upstreamTests.loadBalancer, upstreamTests.kubeProxy].map((name) => line(name, 'passed', '')).join('\n')}
${isFailing ? line(upstreamTests.fails, 'failed', failure) : line(upstreamTests.fails, 'passed', '')}
${isCut ? '' : line(upstreamTests.skipsItself, 'skipped', skip)}
${line(upstreamTests.isOutside, 'skipped', '<skipped message="skipped"></skipped>')}
<testcase name="[SynchronizedBeforeSuite]" classname="Kubernetes e2e suite" status="passed" time="0.1"></testcase>
</testsuite></testsuites>`;
}

/** A report of our conformance runner. */
export function conformanceReport(failing: readonly string[] = []): ReportFile {
  const one = {
    families: 'IPv4',
    tags: [],
    startedAt: '',
    duration: millis(1),
    checks: [],
    rollouts: [],
    why: '',
  } as const;
  const cases = ['smoke/a', 'smoke/b'].map((id) => ({
    ...one,
    id,
    title: `title of ${id}`,
    because: undefined,
    status: failing.includes(id) ? ('failed' as const) : ('passed' as const),
  }));
  const proxy = { name: 'switchyard-nftables', dataplane: 'nftables', command: undefined } as const;
  const run = { target: 'cluster', proxy, cell: 'ipv4', kernel: '6', seed: 1, round: 1, startedAt: '' } as const;
  return { schema: 'switchyard-conformance/2', version: '0', runs: [{ ...run, duration: millis(1), cases }] };
}

/** Shell text that writes a text into the file that stands behind an option of the call. */
function writeBehind(option: string, text: string): string {
  return `while [ "$1" != ${option} ]; do shift; done
cat >"$2" <<'TEXT'
${text}
TEXT`;
}

/** Our conformance runner against a cluster, or in a lab. */
export function conformanceCall(failing: readonly string[] = [], target: 'cluster' | 'lab' = 'cluster'): ScriptedCall {
  const effect = writeBehind('--json', JSON.stringify(conformanceReport(failing)));
  const call = `node *apps/conformance/src/main.ts run -v --target ${target} *`;
  return { call, effect, exitCode: failing.length > 0 ? 1 : 0, stdout: 'the summary\n' };
}

/** Upstream's tests in their container, which writes its report into the folder that is mounted at /results. */
export function upstreamCall(end: UpstreamEnd = {}): ScriptedCall {
  const effect = `for word in "$@"; do case "$word" in *:/results) folder=\${word%:/results} ;; esac; done
cat >"$folder/junit_01.xml" <<'TEXT'
${junit(end)}
TEXT`;
  const call = 'docker run --rm --name *-upstream --label * --entrypoint /usr/local/bin/ginkgo *';
  const stdout =
    end.isFailing === true
      ? `${line}\n• [FAILED] [1.500 seconds]\n${upstreamTests.fails} [sig-network]\n${line}\n`
      : '';
  return { call, effect, stdout, exitCode: end.isFailing === true || end.isCut === true ? 1 : 0 };
}

/** Ginkgo's separator between tests. */
const line = '-'.repeat(30);

/** Programs that the driver calls. */
export const scriptedNames = [
  'kind',
  'docker',
  'kubectl',
  'node',
  'helm',
  'curl',
  'seq',
  'sleep',
  'dev',
  'switchyard-lb',
] as const;

/**
 * A machine with Docker, kind and kubectl on which everything goes well. Clusters are files in `$here/clusters`, our own containers files in
 * `$here/containers`, whose text is their label.
 */
export function kindScript(): readonly ScriptedCall[] {
  const remember = 'mkdir -p "$here/clusters" "$here/containers"';
  const removed = 'for id in "$@"; do rm -f "$here/containers/$id"; done';
  const sed = 's/^dev.switchyard.e2e.cluster=//p';
  const list = `${remember}; for file in "$here"/containers/*; do [ ! -f "$file" ] || sed -n '${sed}' "$file"; done`;
  const ids = `${remember}; grep -l -x -- "\${5#label=}" "$here"/containers/* 2>/dev/null | sed 's,.*/,,'; :`;
  return [
    { call: 'docker info *', stdout: '28.2.2 2\n' },
    { call: 'docker version --format *', stdout: '1.24\n' },
    { call: 'docker image inspect *', stdout: 'sha256:0\n' },
    { call: 'kind version *', stdout: '0.33.0\n' },
    { call: 'kubectl version --client', stdout: 'Client Version: v1.37.0\n' },
    { call: 'kind get clusters', effect: `${remember}; ls "$here/clusters"` },
    { call: 'docker ps --all --filter label=dev.switchyard.e2e.cluster --format *', effect: list },
    { call: 'docker run --rm --entrypoint /usr/local/bin/e2e.test * --list-tests', stdout: testList },
    { call: 'node * */tools/images/image.ts *' },
    { call: 'kind create cluster --name * *', effect: `${remember}; : >"$here/clusters/$4"` },
    { call: 'kind load docker-image * --name *' },
    { call: 'kubectl --kubeconfig * apply -k *' },
    { call: 'kubectl --kubeconfig * rollout status *' },
    { call: 'kubectl --kubeconfig * wait --for=condition=Ready nodes *' },
    {
      call: 'docker run --detach --name *-lb-controller *',
      effect: `${remember}; printf '%s\\n' "$8" >"$here/containers/controller"
printf 'dev.switchyard.lb.cluster=%s\\n' "\${8#*=}" >"$here/containers/lb"`,
    },
    { call: 'docker logs *', stderr: '{"msg":"serving the cluster"}\n' },
    conformanceCall(),
    { call: 'kind get kubeconfig --internal --name *', stdout: 'apiVersion: v1\n' },
    upstreamCall(),
    { call: 'docker ps --all --quiet --filter label=*', effect: ids },
    { call: 'docker rm --force --volumes *', effect: removed },
    { call: 'kind delete cluster --name *', effect: 'rm -f "$here/clusters/$4"' },
    // The commands of pages, which find the cluster by their environment.
    { call: 'helm version --short', stdout: 'v3.19.0\n' },
    { call: 'helm install *' },
    { call: 'dev image *' },
    {
      call: 'kind create cluster --image *',
      effect: `cat >/dev/null; ${remember}; : >"$here/clusters/$KIND_CLUSTER_NAME"`,
    },
    { call: 'kind load docker-image switchyard/agent-nftables:0.1.0' },
    { call: 'kind delete cluster', effect: 'rm -f "$here/clusters/$KIND_CLUSTER_NAME"' },
    { call: 'docker run -d *' },
    { call: 'docker rm -f *' },
    { call: 'kubectl -n kube-system *' },
    { call: 'kubectl apply *' },
    { call: 'kubectl delete *' },
    { call: 'kubectl annotate *' },
    { call: 'kubectl label *' },
    { call: 'kubectl wait *' },
    { call: 'kubectl rollout *' },
    { call: 'kubectl get *', stdout: '172.18.0.9' },
    { call: 'curl *' },
    { call: 'seq *', stdout: '1\n2\n3\n' },
    { call: 'sleep *' },
    { call: 'switchyard-lb check *' },
    // Diagnostics.
    { call: 'kind export logs *', effect: 'mkdir -p "$3"; echo "a journal" >"$3/journal.log"' },
    { call: 'kubectl --kubeconfig * get *', stdout: 'an object\n' },
    { call: 'kubectl --kubeconfig * get lease switchyard-lb *' },
    { call: 'kubectl --kubeconfig * describe *', stdout: 'a description\n' },
    { call: 'kubectl --kubeconfig * logs *', stdout: 'a line of a log\n' },
    { call: 'docker exec *', stdout: 'what a node knows\n' },
    { call: 'docker ps --all --no-trunc *', stdout: 'a container\n' },
    { call: 'docker ps --all --filter label=dev.switchyard.lb.cluster=* --format *', stdout: 'switchyard-lb-a-1\n' },
  ];
}
