import type { ForwardingTable, HealthCheck, ServiceForwarding } from '@switchyard/core';
import type { ChainRule, RenderedService, RenderedSettings } from '../chains.ts';
import type { RenderOptions } from '../options.ts';

/** What translates the forwarding table into rules. */
export interface Renderer {
  service(service: ServiceForwarding, options: RenderOptions): RenderedService;
  settings(table: ForwardingTable, options: RenderOptions): RenderedSettings;
  healthCheck(check: HealthCheck, options: RenderOptions): ChainRule;
}
