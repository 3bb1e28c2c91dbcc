import type { MapSizes } from '../../src/render/layouts.ts';

/** Small enough to be made in no time. */
export const tinySizes: MapSizes = { services: 64, endpoints: 64, slots: 64, frontends: 64, sourceRanges: 64 };

/** Twice as large. */
export function largerOf(sizes: MapSizes): MapSizes {
  return {
    services: sizes.services * 2,
    endpoints: sizes.endpoints * 2,
    slots: sizes.slots * 2,
    frontends: sizes.frontends * 2,
    sourceRanges: sizes.sourceRanges * 2,
  };
}
