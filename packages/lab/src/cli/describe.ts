import { readFile } from 'node:fs/promises';
import { ConfigError, ipFamilies } from '@switchyard/core';
import { hostAddresses } from '../address-plan.ts';
import { readClusterRecord } from '../cluster-record.ts';
import { planHosts } from '../create-lab.ts';
import { pidsInNamespace } from '../destroy-lab.ts';
import { type LabListing, listLabs } from '../list-labs.ts';
import { labFolder, namespaceName } from '../names.ts';

/** `lab list`: one line for each lab. */
export async function describeLabs(): Promise<readonly string[]> {
  const labs = await listLabs();
  if (labs.length === 0) return ['no labs'];
  return labs.map(({ name, status, record, hosts }) => {
    const owner = record === undefined ? 'no record' : `owner ${record.owner.pid}, since ${record.createdAt}`;
    const nodes = hosts.filter((host) => /^node[0-9]+$/.test(host)).length;
    const remedy = status === 'dead' ? `; remove it with ./dev lab down --name ${name}` : '';
    return `${name}: ${status}, ${nodes} nodes, ${owner}${remedy}`;
  });
}

/** `lab status`: the lab, how to reach its API server, and a line for each host and pod with its programs. */
export async function describeLab(name: string): Promise<readonly string[]> {
  const lab = (await listLabs()).find((candidate) => candidate.name === name);
  if (lab === undefined) throw new ConfigError('lab.none', `there is no lab ${name}; ./dev lab list shows all`);
  const cluster = await readClusterRecord(name);
  const server = cluster === undefined ? 'none' : `${cluster.url} (inside: ${cluster.insideUrl})`;
  const hosts = await Promise.all(lab.hosts.map((host) => describeHost(lab, host)));
  return [
    `lab ${name}: ${lab.status}, owner ${lab.record?.owner.pid ?? 'unknown'}, folder ${labFolder(name)}`,
    `API server: ${server}`,
    ...(cluster === undefined ? [] : [`KUBECONFIG=${cluster.kubeconfig}`]),
    ...hosts,
  ];
}

async function describeHost(lab: LabListing, host: string): Promise<string> {
  const plan = planHosts(lab.record?.nodes ?? 0).find(({ name }) => name === host);
  const families = lab.record?.ipFamilies ?? ipFamilies;
  const addresses = plan === undefined ? ['pod'] : Object.values(hostAddresses(plan.number, families));
  const pids = await pidsInNamespace(namespaceName(lab.name, host));
  const programs = await Promise.all(pids.map(describeProgram));
  return `  ${host.padEnd(10)} ${addresses.join(' ')}${programs.length === 0 ? '' : `  [${programs.join(', ')}]`}`;
}

async function describeProgram(pid: number): Promise<string> {
  const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  const words = text.split('\0').filter(Boolean);
  // The script's name says more than `node`.
  const script = words.find((word) => /\.(ts|js|mjs)$/.test(word));
  return `${(script ?? words[0] ?? '?').replace(/^.*\//, '')} ${pid}`;
}
