/** Reading a frame that is written by hand, field by field. */
import { MalformedError } from './peer-fields.ts'

/** Where reading a frame has got to. Whoever reads moves it on; it is never beyond the end. */
export class FrameCursor {
  readonly bytes: Buffer
  at: number

  constructor(bytes: Buffer, at: number) {
    this.bytes = bytes
    this.at = at
  }

  /** Where the next `length` bytes begin. */
  take(length: number): number {
    const start = this.at
    if (start + length > this.bytes.length) throw new MalformedError('the frame is cut')
    this.at = start + length
    return start
  }
}
