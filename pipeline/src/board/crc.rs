//! CRC-32C (Castagnoli), masked as TFRecords have it.

/// The polynomial, its bits in reverse.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// The remainder of every byte.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte: u32 = 0;
    while byte < 256 {
        let (mut remainder, mut bit) = (byte, 0);
        while bit < 8 {
            remainder = if remainder & 1 == 1 { remainder >> 1 ^ POLYNOMIAL } else { remainder >> 1 };
            bit += 1;
        }
        table[byte as usize] = remainder;
        byte += 1;
    }
    table
};

fn crc(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| TABLE[usize::from(crc.to_le_bytes()[0] ^ byte)] ^ crc >> 8;
    !bytes.iter().fold(u32::MAX, step)
}

/// The check of a record's part: rotated and moved, so that a check of bytes that hold checks is no plain one.
pub(super) fn masked(bytes: &[u8]) -> u32 {
    crc(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_are_those_of_rfc_3720() {
        assert_eq!(crc(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc(&[0xff; 32]), 0x62a8_ab43);
        let rising: Vec<u8> = (0..32).collect();
        assert_eq!(crc(&rising), 0x46dd_794e);
        assert_eq!((crc(b"123456789"), crc(b"")), (0xe306_9283, 0));
    }
}
