/** Times in JSON, as `base/iso-time.ts` writes and reads them. */
export { isoOf, timestampOf } from '../base/iso-time.ts'
