import { expect, test } from 'vitest';
import { describeContract } from '../unit/describe-contract.ts';
import { describeFaults, describeVariants } from '../unit/describe-rendered.ts';
import { harnesses } from '../unit/harnesses.ts';
import { renderedScenarios } from '../unit/rendered-scenarios.ts';

// `nx test` runs these in the first IP family of each file.
describeContract(harnesses, 'others');
describeFaults(harnesses, 'others');
describeVariants('others');

test.each(harnesses)('first and other families are together all scenarios ($name)', ({ dataplane }) => {
  const [first, others, all] = (['first', 'others', 'all'] as const).map((one) => renderedScenarios(dataplane, one));
  expect(new Set([...first!, ...others!])).toEqual(new Set(all));
  expect(first!.length + others!.length).toBe(all!.length);
});
