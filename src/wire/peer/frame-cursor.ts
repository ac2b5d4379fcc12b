/** Reading a frame that is written by hand, field by field. */
import { readVar, varBytes } from '../../base/bytes.ts'
import { MalformedError } from '../fields.ts'

/** Where reading a frame has got to. Whoever reads moves it on; it is never beyond the end. */
export class FrameCursor {
  readonly bytes: Buffer
  at: number

  constructor(bytes: Buffer, at: number) {
    this.bytes = bytes
    this.at = at
  }

  /** The number that comes next, as `writeVar` wrote it. */
  count(): number {
    const value = readVar(this.bytes, this.at)
    if (value === undefined) throw new MalformedError('a number is cut')
    this.at += varBytes(value)
    return value
  }

  /** Where the next `length` bytes begin. */
  take(length: number): number {
    const start = this.at
    if (start + length > this.bytes.length) throw new MalformedError('the frame is cut')
    this.at = start + length
    return start
  }
}
