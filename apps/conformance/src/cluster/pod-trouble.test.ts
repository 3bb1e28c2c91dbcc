import type { EventObject, Pod } from '@switchyard/core/kubernetes';
import { expect, test } from 'vitest';
import { type PodStanding, podStanding } from './start-pods.ts';

const waiting = (reason: string, message?: string): NonNullable<Pod['status']> => ({
  phase: 'Pending',
  containerStatuses: [
    {
      name: 'c',
      image: '',
      imageID: '',
      ready: false,
      restartCount: 0,
      state: { waiting: { reason, ...(message === undefined ? {} : { message }) } },
    },
  ],
});
const ended = (exitCode: number, message: string): NonNullable<Pod['status']> => ({
  phase: 'Failed',
  containerStatuses: [
    {
      name: 'c',
      image: '',
      imageID: '',
      ready: false,
      restartCount: 0,
      state: { terminated: { exitCode, reason: 'Error', message } },
    },
  ],
});
const event = (type: string, message: string): EventObject => ({ metadata: {}, involvedObject: {}, type, message });
const pulling = event('Normal', 'Pulling image "x"');
const mount = event('Warning', 'MountVolume.SetUp failed');
const unschedulable = { type: 'PodScheduled', status: 'False', message: '0/2 nodes are available' };
const unready = { type: 'Ready', status: 'False', message: 'containers with unready status: [c]' };

test.each<[string, NonNullable<Pod['status']>, readonly EventObject[], PodStanding]>([
  [
    'has not been seen by its node',
    {},
    [],
    { kind: 'pending', why: 'its node has not said anything yet', isHopeless: false },
  ],
  [
    'pulls its image',
    { ...waiting('ContainerCreating'), conditions: [unready] },
    [pulling],
    { kind: 'pending', why: 'ContainerCreating; Pulling image "x"', isHopeless: false },
  ],
  [
    'cannot pull its image',
    waiting('ImagePullBackOff', 'Back-off pulling image "x"'),
    [pulling],
    { kind: 'pending', why: 'ImagePullBackOff: Back-off pulling image "x"', isHopeless: false },
  ],
  [
    'has a wrong image name',
    waiting('InvalidImageName'),
    [],
    { kind: 'pending', why: 'InvalidImageName', isHopeless: true },
  ],
  [
    'has no place',
    { phase: 'Pending', conditions: [unschedulable] },
    [],
    { kind: 'pending', why: '0/2 nodes are available', isHopeless: false },
  ],
  [
    'is warned of',
    waiting('Other'),
    [mount],
    { kind: 'pending', why: 'Other; MountVolume.SetUp failed', isHopeless: false },
  ],
  ['runs', { phase: 'Running', podIPs: [{ ip: '10.0.0.1' }] }, [], { kind: 'running' }],
  [
    'runs without an address',
    { phase: 'Running' },
    [],
    { kind: 'pending', why: 'its node has not said anything yet', isHopeless: false },
  ],
  ['has ended', ended(98, 'port taken\n'), [], { kind: 'ended', exitCode: 98, why: 'Error: port taken' }],
  [
    'was refused by its node',
    { phase: 'Failed', reason: 'OutOfpods', message: 'Node did not have enough resource: pods' },
    [],
    { kind: 'ended', exitCode: undefined, why: 'OutOfpods: Node did not have enough resource: pods' },
  ],
])('a pod that %s', (_, status, events, expected) => {
  expect(podStanding({ metadata: {}, status }, events)).toEqual(expected);
});
