/**
 * Files that are not what their names say. Read as text of lines, some of them would pass for a file of one odd
 * column and be loaded; their first bytes give them away.
 */
import { UnusableFile } from './unusable-file.ts'

/** The first bytes of a file, enough to recognise every form below. */
const headBytes = 512

const toUtf8 = (from: string): string => `(iconv -f ${from} -t UTF-8 makes it UTF-8)`

/** The beginnings of files of a form, a character a byte. The longer beginning is looked at first. */
const forms: readonly (readonly [begins: string, what: string])[] = [
  ['\xff\xfe\0\0', `it is UTF-32, not UTF-8 ${toUtf8('UTF-32')}`],
  ['\0\0\xfe\xff', `it is UTF-32, not UTF-8 ${toUtf8('UTF-32')}`],
  ['\xff\xfe', `it is UTF-16, not UTF-8 ${toUtf8('UTF-16')}`],
  ['\xfe\xff', `it is UTF-16, not UTF-8 ${toUtf8('UTF-16')}`],
  ['\x1f\x8b', 'it is packed by gzip: its name has to end in .gz; packed twice, unpack it once'],
  ['PK\x03\x04', 'it is a .zip or a spreadsheet (.xlsx): unpack it, or save it as CSV'],
  ['PK\x05\x06', 'it is an empty .zip'],
  ['\xd0\xcf\x11\xe0', 'it is a spreadsheet (.xls): save it as CSV'],
  ['BZh91AY&SY', 'it is packed by bzip2: unpack it'],
  ['\xfd7zXZ\0', 'it is packed by xz: unpack it'],
  ['\x28\xb5\x2f\xfd', 'it is packed by zstd: unpack it'],
  ['7z\xbc\xaf', 'it is packed by 7-Zip: unpack it'],
  ['PAR1\x15', 'it is a Parquet file'],
  ['SQLite format 3\0', 'it is a SQLite database'],
  ['%PDF-', 'it is a PDF'],
  ['version https://git-lfs.', 'it only says where Git keeps the file: git lfs pull brings it'],
]

const page = /^\s*<(!doctype|html|\?xml)\b/i
/** In UTF-16 without a mark, one of the first two letters has a NUL beside it, whatever comes later. */
const unmarkedBytes = 4

/** Throws `UnusableFile` for a file that begins so and is no text in UTF-8. */
function refuseForm(head: Buffer): void {
  const text = head.toString('latin1')
  const known = forms.find(([begins]) => text.startsWith(begins))
  if (known !== undefined) throw new UnusableFile(known[1])
  if (page.test(text)) throw new UnusableFile('it is a web page or XML')
  const nulAt = head.subarray(0, unmarkedBytes).indexOf(0)
  if (nulAt >= 0) {
    // Of the two bytes of a letter that ASCII has, the greater is NUL.
    const form = nulAt % 2 === 0 ? 'UTF-16BE' : 'UTF-16LE'
    throw new UnusableFile(`NULs are in it: it may be UTF-16 without a mark ${toUtf8(form)}`)
  }
}

/** The same pieces, once their beginning is found to be text. The pieces before a damage are passed on. */
export async function* textOnly(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let head: Buffer | undefined = Buffer.alloc(0)
  try {
    for await (const chunk of chunks) {
      if (head === undefined) {
        yield chunk
        continue
      }
      head = Buffer.concat([head, chunk])
      if (head.length < headBytes) continue
      refuseForm(head)
      yield head
      head = undefined
    }
  } catch (error) {
    if (!(error instanceof UnusableFile) && head !== undefined) {
      refuseForm(head)
      yield head
    }
    throw error
  }
  if (head === undefined) return
  refuseForm(head)
  yield head
}
