package seal

import "encoding/base64"

// SealWithEphemeral seals to an X25519 key with a chosen ephemeral key, which only
// the vectors may do: a repeated ephemeral key would repeat key and nonce.
func SealWithEphemeral(ephemeral [32]byte, to PublicKey, plaintext []byte) (string, error) {
	key, err := NewPrivateKey(ephemeral[:])
	if err != nil {
		return "", err
	}
	var shared [32]byte
	public, recipient := [32]byte(key.Public().Bytes()), [32]byte(to.Bytes())
	if !agree(&shared, &ephemeral, &recipient) {
		return "", ErrInvalidKey
	}
	return base64.StdEncoding.EncodeToString(sealShared(nil, &public, &shared, &recipient, plaintext)), nil
}
