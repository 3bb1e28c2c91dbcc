import type { Dashboard } from '@grafana/schema';
import { layOut, type RowSpec } from './panels.ts';
import { rows } from './rows.ts';

/** The dashboard as Grafana imports it. */
export function dashboard(specs: readonly RowSpec[] = rows): Dashboard {
  return {
    uid: 'switchyard',
    title: 'Switchyard',
    description:
      'Service forwarding of the nodes: how fast changes arrive, what fails, who changes our rules, which Services are busy',
    tags: ['kubernetes', 'switchyard', 'kube-proxy'],
    schemaVersion: 41,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    time: { from: 'now-1h', to: 'now' },
    timezone: 'browser',
    templating: {
      list: [datasourceVariable, labelVariable('job', 'Job', ''), labelVariable('instance', 'Agent', 'job=~"$job"')],
    },
    panels: layOut(specs),
  };
}

type Variable = NonNullable<NonNullable<Dashboard['templating']>['list']>[number];

const datasourceVariable: Variable = {
  name: 'datasource',
  label: 'Data source',
  type: 'datasource',
  query: 'prometheus',
};

/** A variable whose values are those of a label. */
function labelVariable(name: string, label: string, matchers: string): Variable {
  return {
    name,
    label,
    type: 'query',
    datasource: { type: 'prometheus', uid: '${datasource}' },
    query: `label_values(switchyard_build_info${matchers === '' ? '' : `{${matchers}}`}, ${name})`,
    refresh: 2,
    sort: 1,
    multi: true,
    includeAll: true,
    current: { text: 'All', value: '$__all', selected: true },
  };
}
