import type { Dashboard, Panel, RowPanel } from '@grafana/schema';

/** One line of a panel. `$sel` in the expression stands for the labels of the chosen agents. */
export interface Query {
  readonly expr: string;
  readonly legend: string;
}

/** One panel, as far as a person decides it. */
export interface PanelSpec {
  readonly title: string;
  /** What a reader learns from it, and when to act. */
  readonly description: string;
  readonly kind: 'timeseries' | 'stat' | 'heatmap';
  /** A unit of Grafana's, such as `s`, `bytes`, `ops`. */
  readonly unit: string;
  readonly queries: readonly Query[];
}

/** A heading with the panels under it, from left to right, three to a line. */
export interface RowSpec {
  readonly title: string;
  readonly panels: readonly PanelSpec[];
}

/** A panel of a dashboard; Grafana's own type of `panels`. */
export type AnyPanel = NonNullable<Dashboard['panels']>[number];

const width = 8;
const height = 8;
const columns = 24;
const datasource = { type: 'prometheus', uid: '${datasource}' } as const;
/** The agents the variables of the dashboard choose. */
const selector = 'job=~"$job",instance=~"$instance"';

/** Panels with ids and places. Ids are given in order, from 1. */
export function layOut(rows: readonly RowSpec[]): AnyPanel[] {
  const panels: AnyPanel[] = [];
  let y = 0;
  for (const row of rows) {
    panels.push(heading(row.title, panels.length + 1, y));
    y += 1;
    for (const [index, spec] of row.panels.entries()) {
      const x = (index * width) % columns;
      const line = Math.floor((index * width) / columns);
      panels.push(panel(spec, panels.length + 1, { h: height, w: width, x, y: y + line * height }));
    }
    y += Math.ceil((row.panels.length * width) / columns) * height;
  }
  return panels;
}

function heading(title: string, id: number, y: number): RowPanel {
  return { type: 'row', id, title, collapsed: false, gridPos: { h: 1, w: columns, x: 0, y }, panels: [] };
}

function panel(spec: PanelSpec, id: number, gridPos: NonNullable<Panel['gridPos']>): Panel {
  const { title, description, kind, unit } = spec;
  return {
    type: kind,
    id,
    title,
    description,
    datasource,
    gridPos,
    targets: spec.queries.map(({ expr, legend }, index) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + index),
      datasource,
      expr: expr.replaceAll('$sel', selector),
      legendFormat: legend,
      format: kind === 'heatmap' ? 'heatmap' : 'time_series',
      instant: kind === 'stat',
      range: kind !== 'stat',
    })),
    ...look(kind, unit),
  };
}

function look(kind: PanelSpec['kind'], unit: string): Pick<Panel, 'options' | 'fieldConfig'> {
  if (kind === 'heatmap') {
    return {
      options: {
        calculate: false,
        yAxis: { unit, axisPlacement: 'left' },
        color: { mode: 'scheme', scheme: 'Oranges', steps: 64, exponent: 0.5 },
        cellGap: 1,
        tooltip: { mode: 'single' },
        legend: { show: false },
      },
      fieldConfig: { defaults: {}, overrides: [] },
    };
  }
  if (kind === 'stat') {
    return {
      options: { reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false }, textMode: 'auto' },
      fieldConfig: { defaults: { unit }, overrides: [] },
    };
  }
  return {
    options: {
      legend: { displayMode: 'list', placement: 'bottom', showLegend: true },
      tooltip: { mode: 'multi', sort: 'desc' },
    },
    fieldConfig: {
      defaults: { unit, min: 0, custom: { fillOpacity: 10, lineWidth: 1, showPoints: 'never' } },
      overrides: [],
    },
  };
}
