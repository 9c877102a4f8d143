// Opens and seals boxes of suite xwing with the npm packages @hpke/core and
// @hpke/hybridkem-x-wing. It reads a JSON object from standard input and writes
// one to standard output; all bytes are base64.
//
//   in:  seed       a private key, 32 bytes
//        boxes      sealed to it
//        plaintexts to be sealed, to its public key and to that of a new pair
//   out: publicKey  what belongs to seed
//        opened     the plaintexts of boxes
//        sealed     boxes to publicKey
//        made       {seed, publicKey, sealed}: the same with a key pair made here
import { Aes256Gcm, CipherSuite, HkdfSha256 } from "@hpke/core";
import { XWing } from "@hpke/hybridkem-x-wing";

const info = new TextEncoder().encode("cronstable-push-xwing");
const encapsulated = 1120;
const suite = new CipherSuite({ kem: new XWing(), kdf: new HkdfSha256(), aead: new Aes256Gcm() });

const decode = (text) => new Uint8Array(Buffer.from(text, "base64"));
const encode = (bytes) => Buffer.from(bytes).toString("base64");

async function open(recipientKey, box) {
  const key = { recipientKey, enc: box.slice(0, encapsulated).buffer, info };
  return suite.open(key, box.slice(encapsulated));
}

async function seal(recipientPublicKey, plaintext) {
  const { enc, ct } = await suite.seal({ recipientPublicKey, info }, plaintext);
  return Buffer.concat([Buffer.from(enc), Buffer.from(ct)]);
}

async function sealAll(publicKey, plaintexts) {
  return Promise.all(plaintexts.map(async (text) => encode(await seal(publicKey, decode(text)))));
}

let text = "";
for await (const chunk of process.stdin.setEncoding("utf8")) text += chunk;
const input = JSON.parse(text);

const ours = await suite.kem.generateKeyPairDerand(decode(input.seed));
const theirs = await suite.kem.generateKeyPair();
const publicBytes = async (pair) => encode(await suite.kem.serializePublicKey(pair.publicKey));
console.log(JSON.stringify({
  publicKey: await publicBytes(ours),
  opened: await Promise.all(input.boxes.map(async (box) => encode(await open(ours.privateKey, decode(box))))),
  sealed: await sealAll(ours.publicKey, input.plaintexts),
  made: {
    seed: encode(await suite.kem.serializePrivateKey(theirs.privateKey)),
    publicKey: await publicBytes(theirs),
    sealed: await sealAll(theirs.publicKey, input.plaintexts),
  },
}));
