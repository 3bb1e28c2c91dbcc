import { type NetlinkRequest, NLM_F } from '@switchyard/native';
import { NFT_MSG, NFTA } from '@switchyard/netfilter';
import type { SlotCounts } from '../transport.ts';
import type { BatchEncoder } from './encode-batch.ts';
import { writeElement, writeKey } from './write-objects.ts';

/** The kernel answers each slot with a message of its own: as many as the socket's receive buffer can hold, 4 KiB each. */
const slotsPerRequest = 256;

interface SlotsToRead {
  readonly table: string;
  readonly name: string;
  readonly sets: SlotCounts;
}

/** Requests for all slots of the sets. Each is valid until the next one. */
export function* slotRequests(
  encoder: BatchEncoder,
  { table, name, sets }: SlotsToRead,
): Generator<NetlinkRequest, void, undefined> {
  const places = placesOf(sets);
  for (let place = places.next(); place.done !== true;) {
    yield encoder.request({ type: NFT_MSG.GETSETELEM, flags: NLM_F.REQUEST | NLM_F.ACK }, (writer) => {
      writer.attributeText(NFTA.ELEM_LIST.TABLE, table);
      writer.attributeText(NFTA.ELEM_LIST.SET, name);
      writer.nested(NFTA.ELEM_LIST.ELEMENTS, () => {
        for (let count = 0; count < slotsPerRequest && place.done !== true; count++) {
          const { value: key } = place;
          writeElement(writer, () => writeKey(writer, key));
          place = places.next();
        }
      });
    });
  }
}

/** Keys: set and slot, 32 bits each in the machine's byte order. The same array for each. */
function* placesOf(sets: SlotCounts): Generator<Uint8Array, void, undefined> {
  const numbers = new Uint32Array(2);
  const key = new Uint8Array(numbers.buffer);
  for (const [set, slots] of sets) {
    numbers[0] = set;
    for (let slot = 0; slot < slots; slot++) {
      numbers[1] = slot;
      yield key;
    }
  }
}
