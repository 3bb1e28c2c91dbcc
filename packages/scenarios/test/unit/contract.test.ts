import { describeContract } from './describe-contract.ts';
import { harnesses } from './harnesses.ts';

describeContract(harnesses, 'first');
