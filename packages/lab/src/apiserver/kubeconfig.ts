/** A kubeconfig for one server, as JSON, which is YAML too. The token is accepted but not required. */
export function kubeconfigFor(url: string, token: string): string {
  const name = 'switchyard-lab';
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name, cluster: { server: url } }],
    users: [{ name, user: { token } }],
    contexts: [{ name, context: { cluster: name, user: name, namespace: 'default' } }],
    'current-context': name,
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}
