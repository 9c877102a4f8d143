package webpushtest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// Sizes in bytes (RFC 8188, section 2.1; RFC 8291, sections 3.2 and 4).
const (
	authSize   = 16
	saltSize   = 16
	keySize    = 65 // uncompressed P-256 point
	headerSize = saltSize + 4 + 1 + keySize
	tagSize    = 16
)

// open opens the body of a message with the keys of a browser (RFC 8291, section 3; RFC 8188, section 2).
func open(private *ecdh.PrivateKey, auth, body []byte) ([]byte, error) {
	if len(body) < headerSize+1+tagSize {
		return nil, errors.New("the message is too short for header, delimiter and tag")
	}
	salt, rest := body[:saltSize], body[saltSize:]
	recordSize, rest := binary.BigEndian.Uint32(rest), rest[4:]
	if rest[0] != keySize {
		return nil, fmt.Errorf("the key id has %d bytes, where the sender's public key has 65", rest[0])
	}
	senderKey, record := rest[1:1+keySize], rest[1+keySize:]
	if recordSize < 18 || uint64(len(record)) > uint64(recordSize) {
		return nil, fmt.Errorf("%d bytes are not one record of at most %d", len(record), recordSize)
	}
	sender, err := ecdh.P256().NewPublicKey(senderKey)
	if err != nil {
		return nil, errors.New("the sender's public key is no point of P-256")
	}
	shared, err := private.ECDH(sender)
	if err != nil {
		return nil, err
	}
	info := bytes.Join([][]byte{[]byte("WebPush: info\x00"), private.PublicKey().Bytes(), senderKey}, nil)
	keyMaterial, err := hkdf.Key(sha256.New, shared, auth, string(info), 32)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, keyMaterial, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, keyMaterial, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	padded, err := gcm.Open(nil, nonce, record, nil) // of the first record, the nonce is used as it is
	if err != nil {
		return nil, errors.New("the message does not open with the browser's keys")
	}
	plaintext := bytes.TrimRight(padded, "\x00")
	if len(plaintext) == 0 || plaintext[len(plaintext)-1] != 2 {
		return nil, errors.New("the record does not end with the delimiter of the last one")
	}
	return plaintext[:len(plaintext)-1], nil
}
