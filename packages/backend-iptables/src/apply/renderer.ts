import type { HealthCheck, ServiceForwarding } from '@switchyard/core';
import type { ChainRule, RenderedService, RenderedSettings } from '../chains.ts';
import type { RenderOptions } from '../options.ts';
import { renderHealthCheck } from '../render/render-health-check.ts';
import { renderService } from '../render/render-service.ts';
import { renderSettings } from '../render/render-settings.ts';

/** What translates the forwarding table into rules. */
export interface Renderer {
  service(service: ServiceForwarding, options: RenderOptions): RenderedService;
  settings(options: RenderOptions): RenderedSettings;
  healthCheck(check: HealthCheck): ChainRule;
}

/** kube-proxy's layout. */
export const kubeProxyRenderer: Renderer = {
  service: renderService,
  settings: renderSettings,
  healthCheck: renderHealthCheck,
};
