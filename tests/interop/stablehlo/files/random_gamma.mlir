"builtin.module"() <{sym_name = "jit_random_gamma"}> ({
  "func.func"() <{function_type = (tensor<2xui32>) -> tensor<3xf64>, res_attrs = [{jax.result_info = "result"}], sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg157: tensor<2xui32>):
    %693 = "stablehlo.constant"() <{value = dense<2.500000e+00> : tensor<f64>}> : () -> tensor<f64>
    %694 = "func.call"(%arg157, %693) <{callee = @_gamma}> : (tensor<2xui32>, tensor<f64>) -> tensor<3xf64>
    "func.return"(%694) : (tensor<3xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<2xui32>, tensor<f64>) -> tensor<3xf64>, sym_name = "_gamma", sym_visibility = "private"}> ({
  ^bb0(%arg131: tensor<2xui32>, %arg132: tensor<f64>):
    %572 = "stablehlo.constant"() <{value = dense<-1.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %573 = "stablehlo.constant"() <{value = dense<false> : tensor<i1>}> : () -> tensor<i1>
    %574 = "stablehlo.constant"() <{value = dense<5.000000e-01> : tensor<f64>}> : () -> tensor<f64>
    %575 = "stablehlo.constant"() <{value = dense<3.310000e-02> : tensor<f64>}> : () -> tensor<f64>
    %576 = "stablehlo.constant"() <{value = dense<2.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %577 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %578 = "stablehlo.constant"() <{value = dense<0.33333333333333331> : tensor<f64>}> : () -> tensor<f64>
    %579 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %580 = "stablehlo.convert"(%arg132) : (tensor<f64>) -> tensor<f64>
    %581 = "stablehlo.broadcast_in_dim"(%580) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %582 = "stablehlo.reshape"(%arg131) : (tensor<2xui32>) -> tensor<1x2xui32>
    %583 = "func.call"(%582) <{callee = @_threefry_split}> : (tensor<1x2xui32>) -> tensor<1x3x2xui32>
    %584 = "stablehlo.reshape"(%583) : (tensor<1x3x2xui32>) -> tensor<3x2xui32>
    %585 = "stablehlo.broadcast_in_dim"(%579) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %586 = "stablehlo.compare"(%581, %585) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
    %587 = "stablehlo.broadcast_in_dim"(%579) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %588 = "stablehlo.add"(%581, %587) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %589 = "stablehlo.select"(%586, %581, %588) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %590 = "stablehlo.broadcast_in_dim"(%578) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %591 = "stablehlo.subtract"(%589, %590) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %592 = "stablehlo.sqrt"(%591) : (tensor<3xf64>) -> tensor<3xf64>
    %593 = "stablehlo.broadcast_in_dim"(%578) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %594 = "stablehlo.divide"(%593, %592) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %595 = "func.call"(%584) <{callee = @_threefry_split_0}> : (tensor<3x2xui32>) -> tensor<3x2x2xui32>
    %596 = "stablehlo.slice"(%595) <{limit_indices = array<i64: 3, 1, 2>, start_indices = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>}> : (tensor<3x2x2xui32>) -> tensor<3x1x2xui32>
    %597 = "stablehlo.reshape"(%596) : (tensor<3x1x2xui32>) -> tensor<3x2xui32>
    %598 = "stablehlo.slice"(%595) <{limit_indices = array<i64: 3, 2, 2>, start_indices = array<i64: 0, 1, 0>, strides = array<i64: 1, 1, 1>}> : (tensor<3x2x2xui32>) -> tensor<3x1x2xui32>
    %599 = "stablehlo.reshape"(%598) : (tensor<3x1x2xui32>) -> tensor<3x2xui32>
    %600 = "stablehlo.broadcast_in_dim"(%577) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %601 = "stablehlo.broadcast_in_dim"(%579) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %602 = "stablehlo.broadcast_in_dim"(%576) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %603:6 = "stablehlo.while"(%591, %594, %597, %600, %601, %602) ({
    ^bb0(%arg149: tensor<3xf64>, %arg150: tensor<3xf64>, %arg151: tensor<3x2xui32>, %arg152: tensor<3xf64>, %arg153: tensor<3xf64>, %arg154: tensor<3xf64>):
      %674 = "stablehlo.multiply"(%arg152, %arg152) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %675 = "stablehlo.broadcast_in_dim"(%575) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
      %676 = "stablehlo.multiply"(%675, %674) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %677 = "stablehlo.broadcast_in_dim"(%579) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
      %678 = "stablehlo.subtract"(%677, %676) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %679 = "stablehlo.compare"(%arg154, %678) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
      %680 = "stablehlo.log"(%arg154) : (tensor<3xf64>) -> tensor<3xf64>
      %681 = "stablehlo.broadcast_in_dim"(%574) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
      %682 = "stablehlo.multiply"(%arg152, %681) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %683 = "stablehlo.broadcast_in_dim"(%579) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
      %684 = "stablehlo.subtract"(%683, %arg153) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %685 = "stablehlo.log"(%arg153) : (tensor<3xf64>) -> tensor<3xf64>
      %686 = "stablehlo.add"(%684, %685) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %687 = "stablehlo.multiply"(%arg149, %686) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %688 = "stablehlo.add"(%682, %687) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %689 = "stablehlo.compare"(%680, %688) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
      %690 = "stablehlo.and"(%679, %689) : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
      %691 = "stablehlo.reduce"(%690, %573) <{dimensions = array<i64: 0>}> ({
      ^bb0(%arg155: tensor<i1>, %arg156: tensor<i1>):
        %692 = "stablehlo.or"(%arg155, %arg156) : (tensor<i1>, tensor<i1>) -> tensor<i1>
        "stablehlo.return"(%692) : (tensor<i1>) -> ()
      }) : (tensor<3xi1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%691) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg133: tensor<3xf64>, %arg134: tensor<3xf64>, %arg135: tensor<3x2xui32>, %arg136: tensor<3xf64>, %arg137: tensor<3xf64>, %arg138: tensor<3xf64>):
      %614 = "func.call"(%arg135) <{callee = @_threefry_split_3}> : (tensor<3x2xui32>) -> tensor<3x3x2xui32>
      %615 = "stablehlo.slice"(%614) <{limit_indices = array<i64: 3, 1, 2>, start_indices = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>}> : (tensor<3x3x2xui32>) -> tensor<3x1x2xui32>
      %616 = "stablehlo.reshape"(%615) : (tensor<3x1x2xui32>) -> tensor<3x2xui32>
      %617 = "stablehlo.slice"(%614) <{limit_indices = array<i64: 3, 2, 2>, start_indices = array<i64: 0, 1, 0>, strides = array<i64: 1, 1, 1>}> : (tensor<3x3x2xui32>) -> tensor<3x1x2xui32>
      %618 = "stablehlo.reshape"(%617) : (tensor<3x1x2xui32>) -> tensor<3x2xui32>
      %619 = "stablehlo.slice"(%614) <{limit_indices = array<i64: 3, 3, 2>, start_indices = array<i64: 0, 2, 0>, strides = array<i64: 1, 1, 1>}> : (tensor<3x3x2xui32>) -> tensor<3x1x2xui32>
      %620 = "stablehlo.reshape"(%619) : (tensor<3x1x2xui32>) -> tensor<3x2xui32>
      %621 = "stablehlo.broadcast_in_dim"(%577) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
      %622 = "stablehlo.broadcast_in_dim"(%572) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
      %623:4 = "stablehlo.while"(%arg134, %618, %621, %622) ({
      ^bb0(%arg143: tensor<3xf64>, %arg144: tensor<3x2xui32>, %arg145: tensor<3xf64>, %arg146: tensor<3xf64>):
        %670 = "stablehlo.broadcast_in_dim"(%577) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
        %671 = "stablehlo.compare"(%arg146, %670) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
        %672 = "stablehlo.reduce"(%671, %573) <{dimensions = array<i64: 0>}> ({
        ^bb0(%arg147: tensor<i1>, %arg148: tensor<i1>):
          %673 = "stablehlo.or"(%arg147, %arg148) : (tensor<i1>, tensor<i1>) -> tensor<i1>
          "stablehlo.return"(%673) : (tensor<i1>) -> ()
        }) : (tensor<3xi1>, tensor<i1>) -> tensor<i1>
        "stablehlo.return"(%672) : (tensor<i1>) -> ()
      }, {
      ^bb0(%arg139: tensor<3xf64>, %arg140: tensor<3x2xui32>, %arg141: tensor<3xf64>, %arg142: tensor<3xf64>):
        %653 = "func.call"(%arg140) <{callee = @_threefry_split_0}> : (tensor<3x2xui32>) -> tensor<3x2x2xui32>
        %654 = "stablehlo.slice"(%653) <{limit_indices = array<i64: 3, 1, 2>, start_indices = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>}> : (tensor<3x2x2xui32>) -> tensor<3x1x2xui32>
        %655 = "stablehlo.reshape"(%654) : (tensor<3x1x2xui32>) -> tensor<3x2xui32>
        %656 = "stablehlo.slice"(%653) <{limit_indices = array<i64: 3, 2, 2>, start_indices = array<i64: 0, 1, 0>, strides = array<i64: 1, 1, 1>}> : (tensor<3x2x2xui32>) -> tensor<3x1x2xui32>
        %657 = "stablehlo.reshape"(%656) : (tensor<3x1x2xui32>) -> tensor<3x2xui32>
        %658 = "func.call"(%657) <{callee = @_normal}> : (tensor<3x2xui32>) -> tensor<3xf64>
        %659 = "stablehlo.multiply"(%658, %arg139) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
        %660 = "stablehlo.broadcast_in_dim"(%579) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
        %661 = "stablehlo.add"(%660, %659) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
        %662 = "stablehlo.broadcast_in_dim"(%577) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
        %663 = "stablehlo.compare"(%arg142, %662) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction LE>}> : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
        %664 = "stablehlo.broadcast_in_dim"(%663) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xi1>) -> tensor<3x2xi1>
        %665 = "stablehlo.select"(%664, %655, %arg140) : (tensor<3x2xi1>, tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
        %666 = "stablehlo.broadcast_in_dim"(%663) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xi1>) -> tensor<3xi1>
        %667 = "stablehlo.select"(%666, %658, %arg141) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
        %668 = "stablehlo.broadcast_in_dim"(%663) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xi1>) -> tensor<3xi1>
        %669 = "stablehlo.select"(%668, %661, %arg142) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
        "stablehlo.return"(%arg139, %665, %667, %669) : (tensor<3xf64>, tensor<3x2xui32>, tensor<3xf64>, tensor<3xf64>) -> ()
      }) : (tensor<3xf64>, tensor<3x2xui32>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3x2xui32>, tensor<3xf64>, tensor<3xf64>)
      %624 = "stablehlo.multiply"(%623#2, %623#2) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %625 = "stablehlo.multiply"(%623#3, %623#3) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %626 = "stablehlo.multiply"(%625, %623#3) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %627 = "func.call"(%620, %577, %579) <{callee = @_uniform_8}> : (tensor<3x2xui32>, tensor<f64>, tensor<f64>) -> tensor<3xf64>
      %628 = "stablehlo.multiply"(%arg136, %arg136) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %629 = "stablehlo.broadcast_in_dim"(%575) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
      %630 = "stablehlo.multiply"(%629, %628) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %631 = "stablehlo.broadcast_in_dim"(%579) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
      %632 = "stablehlo.subtract"(%631, %630) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %633 = "stablehlo.compare"(%arg138, %632) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
      %634 = "stablehlo.log"(%arg138) : (tensor<3xf64>) -> tensor<3xf64>
      %635 = "stablehlo.broadcast_in_dim"(%574) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
      %636 = "stablehlo.multiply"(%arg136, %635) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %637 = "stablehlo.broadcast_in_dim"(%579) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
      %638 = "stablehlo.subtract"(%637, %arg137) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %639 = "stablehlo.log"(%arg137) : (tensor<3xf64>) -> tensor<3xf64>
      %640 = "stablehlo.add"(%638, %639) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %641 = "stablehlo.multiply"(%arg133, %640) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %642 = "stablehlo.add"(%636, %641) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %643 = "stablehlo.compare"(%634, %642) <{compare_type = #stablehlo<comparison_type FLOAT>, comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
      %644 = "stablehlo.and"(%633, %643) : (tensor<3xi1>, tensor<3xi1>) -> tensor<3xi1>
      %645 = "stablehlo.broadcast_in_dim"(%644) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xi1>) -> tensor<3x2xi1>
      %646 = "stablehlo.select"(%645, %616, %arg135) : (tensor<3x2xi1>, tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
      %647 = "stablehlo.broadcast_in_dim"(%644) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xi1>) -> tensor<3xi1>
      %648 = "stablehlo.select"(%647, %624, %arg136) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %649 = "stablehlo.broadcast_in_dim"(%644) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xi1>) -> tensor<3xi1>
      %650 = "stablehlo.select"(%649, %626, %arg137) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      %651 = "stablehlo.broadcast_in_dim"(%644) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xi1>) -> tensor<3xi1>
      %652 = "stablehlo.select"(%651, %627, %arg138) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
      "stablehlo.return"(%arg133, %arg134, %646, %648, %650, %652) : (tensor<3xf64>, tensor<3xf64>, tensor<3x2xui32>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> ()
    }) : (tensor<3xf64>, tensor<3xf64>, tensor<3x2xui32>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<3xf64>, tensor<3xf64>, tensor<3x2xui32>, tensor<3xf64>, tensor<3xf64>, tensor<3xf64>)
    %604 = "func.call"(%599, %577, %579) <{callee = @_uniform_8}> : (tensor<3x2xui32>, tensor<f64>, tensor<f64>) -> tensor<3xf64>
    %605 = "stablehlo.broadcast_in_dim"(%579) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %606 = "stablehlo.subtract"(%605, %604) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %607 = "stablehlo.broadcast_in_dim"(%579) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %608 = "stablehlo.divide"(%607, %581) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %609 = "stablehlo.power"(%606, %608) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %610 = "stablehlo.broadcast_in_dim"(%579) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %611 = "stablehlo.select"(%586, %610, %609) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %612 = "stablehlo.multiply"(%591, %603#4) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %613 = "stablehlo.multiply"(%612, %611) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    "func.return"(%613) : (tensor<3xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<1x2xui32>) -> tensor<1x3x2xui32>, sym_name = "_threefry_split", sym_visibility = "private"}> ({
  ^bb0(%arg130: tensor<1x2xui32>):
    %551 = "stablehlo.constant"() <{value = dense<32> : tensor<ui64>}> : () -> tensor<ui64>
    %552 = "stablehlo.constant"() <{value = dense<1> : tensor<ui64>}> : () -> tensor<ui64>
    %553 = "stablehlo.slice"(%arg130) <{limit_indices = array<i64: 1, 1>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<1x2xui32>) -> tensor<1x1xui32>
    %554 = "stablehlo.reshape"(%553) : (tensor<1x1xui32>) -> tensor<1xui32>
    %555 = "stablehlo.slice"(%arg130) <{limit_indices = array<i64: 1, 2>, start_indices = array<i64: 0, 1>, strides = array<i64: 1, 1>}> : (tensor<1x2xui32>) -> tensor<1x1xui32>
    %556 = "stablehlo.reshape"(%555) : (tensor<1x1xui32>) -> tensor<1xui32>
    %557 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<3xui64>
    %558 = "stablehlo.broadcast_in_dim"(%552) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<3xui64>
    %559 = "stablehlo.multiply"(%558, %557) : (tensor<3xui64>, tensor<3xui64>) -> tensor<3xui64>
    %560 = "stablehlo.broadcast_in_dim"(%551) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<3xui64>
    %561 = "stablehlo.shift_right_logical"(%559, %560) : (tensor<3xui64>, tensor<3xui64>) -> tensor<3xui64>
    %562 = "stablehlo.convert"(%559) : (tensor<3xui64>) -> tensor<3xui32>
    %563 = "stablehlo.convert"(%561) : (tensor<3xui64>) -> tensor<3xui32>
    %564 = "stablehlo.broadcast_in_dim"(%563) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xui32>) -> tensor<1x3xui32>
    %565 = "stablehlo.broadcast_in_dim"(%562) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xui32>) -> tensor<1x3xui32>
    %566 = "stablehlo.broadcast_in_dim"(%554) <{broadcast_dimensions = array<i64: 0>}> : (tensor<1xui32>) -> tensor<1x1xui32>
    %567 = "stablehlo.broadcast_in_dim"(%556) <{broadcast_dimensions = array<i64: 0>}> : (tensor<1xui32>) -> tensor<1x1xui32>
    %568:2 = "func.call"(%566, %567, %564, %565) <{callee = @threefry2x32}> : (tensor<1x1xui32>, tensor<1x1xui32>, tensor<1x3xui32>, tensor<1x3xui32>) -> (tensor<1x3xui32>, tensor<1x3xui32>)
    %569 = "stablehlo.broadcast_in_dim"(%568#0) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x3xui32>) -> tensor<1x3x1xui32>
    %570 = "stablehlo.broadcast_in_dim"(%568#1) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x3xui32>) -> tensor<1x3x1xui32>
    %571 = "stablehlo.concatenate"(%569, %570) <{dimension = 2 : i64}> : (tensor<1x3x1xui32>, tensor<1x3x1xui32>) -> tensor<1x3x2xui32>
    "func.return"(%571) : (tensor<1x3x2xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<1x1xui32>, tensor<1x1xui32>, tensor<1x3xui32>, tensor<1x3xui32>) -> (tensor<1x3xui32>, tensor<1x3xui32>), sym_name = "threefry2x32", sym_visibility = "private"}> ({
  ^bb0(%arg108: tensor<1x1xui32>, %arg109: tensor<1x1xui32>, %arg110: tensor<1x3xui32>, %arg111: tensor<1x3xui32>):
    %534 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
    %535 = "stablehlo.constant"() <{value = dense<5> : tensor<i64>}> : () -> tensor<i64>
    %536 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %537 = "stablehlo.constant"() <{value = dense<466688986> : tensor<ui32>}> : () -> tensor<ui32>
    %538 = "stablehlo.constant"() <{value = dense<[13, 15, 26, 6]> : tensor<4xui32>}> : () -> tensor<4xui32>
    %539 = "stablehlo.constant"() <{value = dense<[17, 29, 16, 24]> : tensor<4xui32>}> : () -> tensor<4xui32>
    %540 = "stablehlo.xor"(%arg108, %arg109) : (tensor<1x1xui32>, tensor<1x1xui32>) -> tensor<1x1xui32>
    %541 = "stablehlo.broadcast_in_dim"(%537) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<1x1xui32>
    %542 = "stablehlo.xor"(%540, %541) : (tensor<1x1xui32>, tensor<1x1xui32>) -> tensor<1x1xui32>
    %543 = "stablehlo.broadcast_in_dim"(%arg108) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x1xui32>) -> tensor<1x3xui32>
    %544 = "stablehlo.add"(%arg110, %543) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %545 = "stablehlo.broadcast_in_dim"(%arg109) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x1xui32>) -> tensor<1x3xui32>
    %546 = "stablehlo.add"(%arg111, %545) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %547:9 = "stablehlo.while"(%536, %536, %544, %546, %arg109, %542, %arg108, %538, %539) ({
    ^bb0(%arg121: tensor<i64>, %arg122: tensor<i64>, %arg123: tensor<1x3xui32>, %arg124: tensor<1x3xui32>, %arg125: tensor<1x1xui32>, %arg126: tensor<1x1xui32>, %arg127: tensor<1x1xui32>, %arg128: tensor<4xui32>, %arg129: tensor<4xui32>):
      %550 = "stablehlo.compare"(%arg121, %535) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
      "stablehlo.return"(%550) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg112: tensor<i64>, %arg113: tensor<i64>, %arg114: tensor<1x3xui32>, %arg115: tensor<1x3xui32>, %arg116: tensor<1x1xui32>, %arg117: tensor<1x1xui32>, %arg118: tensor<1x1xui32>, %arg119: tensor<4xui32>, %arg120: tensor<4xui32>):
      %548:8 = "func.call"(%arg113, %arg114, %arg115, %arg116, %arg117, %arg118, %arg119, %arg120) <{callee = @closed_call}> : (tensor<i64>, tensor<1x3xui32>, tensor<1x3xui32>, tensor<1x1xui32>, tensor<1x1xui32>, tensor<1x1xui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i64>, tensor<1x3xui32>, tensor<1x3xui32>, tensor<1x1xui32>, tensor<1x1xui32>, tensor<1x1xui32>, tensor<4xui32>, tensor<4xui32>)
      %549 = "stablehlo.add"(%arg112, %534) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "stablehlo.return"(%549, %548#0, %548#1, %548#2, %548#3, %548#4, %548#5, %548#6, %548#7) : (tensor<i64>, tensor<i64>, tensor<1x3xui32>, tensor<1x3xui32>, tensor<1x1xui32>, tensor<1x1xui32>, tensor<1x1xui32>, tensor<4xui32>, tensor<4xui32>) -> ()
    }) : (tensor<i64>, tensor<i64>, tensor<1x3xui32>, tensor<1x3xui32>, tensor<1x1xui32>, tensor<1x1xui32>, tensor<1x1xui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i64>, tensor<i64>, tensor<1x3xui32>, tensor<1x3xui32>, tensor<1x1xui32>, tensor<1x1xui32>, tensor<1x1xui32>, tensor<4xui32>, tensor<4xui32>)
    "func.return"(%547#2, %547#3) : (tensor<1x3xui32>, tensor<1x3xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i64>, tensor<1x3xui32>, tensor<1x3xui32>, tensor<1x1xui32>, tensor<1x1xui32>, tensor<1x1xui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i64>, tensor<1x3xui32>, tensor<1x3xui32>, tensor<1x1xui32>, tensor<1x1xui32>, tensor<1x1xui32>, tensor<4xui32>, tensor<4xui32>), sym_name = "closed_call", sym_visibility = "private"}> ({
  ^bb0(%arg100: tensor<i64>, %arg101: tensor<1x3xui32>, %arg102: tensor<1x3xui32>, %arg103: tensor<1x1xui32>, %arg104: tensor<1x1xui32>, %arg105: tensor<1x1xui32>, %arg106: tensor<4xui32>, %arg107: tensor<4xui32>):
    %483 = "stablehlo.constant"() <{value = dense<32> : tensor<ui32>}> : () -> tensor<ui32>
    %484 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
    %485 = "stablehlo.add"(%arg100, %484) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %486 = "stablehlo.slice"(%arg106) <{limit_indices = array<i64: 1>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %487 = "stablehlo.reshape"(%486) : (tensor<1xui32>) -> tensor<ui32>
    %488 = "stablehlo.add"(%arg101, %arg102) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %489 = "stablehlo.broadcast_in_dim"(%487) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<1x3xui32>
    %490 = "stablehlo.shift_left"(%arg102, %489) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %491 = "stablehlo.subtract"(%483, %487) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %492 = "stablehlo.broadcast_in_dim"(%491) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<1x3xui32>
    %493 = "stablehlo.shift_right_logical"(%arg102, %492) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %494 = "stablehlo.or"(%490, %493) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %495 = "stablehlo.xor"(%488, %494) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %496 = "stablehlo.slice"(%arg106) <{limit_indices = array<i64: 2>, start_indices = array<i64: 1>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %497 = "stablehlo.reshape"(%496) : (tensor<1xui32>) -> tensor<ui32>
    %498 = "stablehlo.add"(%488, %495) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %499 = "stablehlo.broadcast_in_dim"(%497) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<1x3xui32>
    %500 = "stablehlo.shift_left"(%495, %499) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %501 = "stablehlo.subtract"(%483, %497) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %502 = "stablehlo.broadcast_in_dim"(%501) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<1x3xui32>
    %503 = "stablehlo.shift_right_logical"(%495, %502) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %504 = "stablehlo.or"(%500, %503) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %505 = "stablehlo.xor"(%498, %504) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %506 = "stablehlo.slice"(%arg106) <{limit_indices = array<i64: 3>, start_indices = array<i64: 2>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %507 = "stablehlo.reshape"(%506) : (tensor<1xui32>) -> tensor<ui32>
    %508 = "stablehlo.add"(%498, %505) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %509 = "stablehlo.broadcast_in_dim"(%507) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<1x3xui32>
    %510 = "stablehlo.shift_left"(%505, %509) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %511 = "stablehlo.subtract"(%483, %507) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %512 = "stablehlo.broadcast_in_dim"(%511) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<1x3xui32>
    %513 = "stablehlo.shift_right_logical"(%505, %512) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %514 = "stablehlo.or"(%510, %513) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %515 = "stablehlo.xor"(%508, %514) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %516 = "stablehlo.slice"(%arg106) <{limit_indices = array<i64: 4>, start_indices = array<i64: 3>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %517 = "stablehlo.reshape"(%516) : (tensor<1xui32>) -> tensor<ui32>
    %518 = "stablehlo.add"(%508, %515) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %519 = "stablehlo.broadcast_in_dim"(%517) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<1x3xui32>
    %520 = "stablehlo.shift_left"(%515, %519) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %521 = "stablehlo.subtract"(%483, %517) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %522 = "stablehlo.broadcast_in_dim"(%521) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<1x3xui32>
    %523 = "stablehlo.shift_right_logical"(%515, %522) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %524 = "stablehlo.or"(%520, %523) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %525 = "stablehlo.xor"(%518, %524) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %526 = "stablehlo.broadcast_in_dim"(%arg103) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x1xui32>) -> tensor<1x3xui32>
    %527 = "stablehlo.add"(%518, %526) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %528 = "stablehlo.broadcast_in_dim"(%arg104) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x1xui32>) -> tensor<1x3xui32>
    %529 = "stablehlo.add"(%525, %528) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    %530 = "stablehlo.add"(%arg100, %484) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %531 = "stablehlo.convert"(%530) : (tensor<i64>) -> tensor<ui32>
    %532 = "stablehlo.broadcast_in_dim"(%531) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<1x3xui32>
    %533 = "stablehlo.add"(%529, %532) : (tensor<1x3xui32>, tensor<1x3xui32>) -> tensor<1x3xui32>
    "func.return"(%485, %527, %533, %arg104, %arg105, %arg103, %arg107, %arg106) : (tensor<i64>, tensor<1x3xui32>, tensor<1x3xui32>, tensor<1x1xui32>, tensor<1x1xui32>, tensor<1x1xui32>, tensor<4xui32>, tensor<4xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x2xui32>) -> tensor<3x2x2xui32>, sym_name = "_threefry_split_0", sym_visibility = "private"}> ({
  ^bb0(%arg99: tensor<3x2xui32>):
    %462 = "stablehlo.constant"() <{value = dense<32> : tensor<ui64>}> : () -> tensor<ui64>
    %463 = "stablehlo.constant"() <{value = dense<1> : tensor<ui64>}> : () -> tensor<ui64>
    %464 = "stablehlo.slice"(%arg99) <{limit_indices = array<i64: 3, 1>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<3x2xui32>) -> tensor<3x1xui32>
    %465 = "stablehlo.reshape"(%464) : (tensor<3x1xui32>) -> tensor<3xui32>
    %466 = "stablehlo.slice"(%arg99) <{limit_indices = array<i64: 3, 2>, start_indices = array<i64: 0, 1>, strides = array<i64: 1, 1>}> : (tensor<3x2xui32>) -> tensor<3x1xui32>
    %467 = "stablehlo.reshape"(%466) : (tensor<3x1xui32>) -> tensor<3xui32>
    %468 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<2xui64>
    %469 = "stablehlo.broadcast_in_dim"(%463) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<2xui64>
    %470 = "stablehlo.multiply"(%469, %468) : (tensor<2xui64>, tensor<2xui64>) -> tensor<2xui64>
    %471 = "stablehlo.broadcast_in_dim"(%462) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<2xui64>
    %472 = "stablehlo.shift_right_logical"(%470, %471) : (tensor<2xui64>, tensor<2xui64>) -> tensor<2xui64>
    %473 = "stablehlo.convert"(%470) : (tensor<2xui64>) -> tensor<2xui32>
    %474 = "stablehlo.convert"(%472) : (tensor<2xui64>) -> tensor<2xui32>
    %475 = "stablehlo.broadcast_in_dim"(%474) <{broadcast_dimensions = array<i64: 1>}> : (tensor<2xui32>) -> tensor<1x2xui32>
    %476 = "stablehlo.broadcast_in_dim"(%473) <{broadcast_dimensions = array<i64: 1>}> : (tensor<2xui32>) -> tensor<1x2xui32>
    %477 = "stablehlo.broadcast_in_dim"(%465) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xui32>) -> tensor<3x1xui32>
    %478 = "stablehlo.broadcast_in_dim"(%467) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xui32>) -> tensor<3x1xui32>
    %479:2 = "func.call"(%477, %478, %475, %476) <{callee = @threefry2x32_1}> : (tensor<3x1xui32>, tensor<3x1xui32>, tensor<1x2xui32>, tensor<1x2xui32>) -> (tensor<3x2xui32>, tensor<3x2xui32>)
    %480 = "stablehlo.broadcast_in_dim"(%479#0) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<3x2xui32>) -> tensor<3x2x1xui32>
    %481 = "stablehlo.broadcast_in_dim"(%479#1) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<3x2xui32>) -> tensor<3x2x1xui32>
    %482 = "stablehlo.concatenate"(%480, %481) <{dimension = 2 : i64}> : (tensor<3x2x1xui32>, tensor<3x2x1xui32>) -> tensor<3x2x2xui32>
    "func.return"(%482) : (tensor<3x2x2xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x1xui32>, tensor<3x1xui32>, tensor<1x2xui32>, tensor<1x2xui32>) -> (tensor<3x2xui32>, tensor<3x2xui32>), sym_name = "threefry2x32_1", sym_visibility = "private"}> ({
  ^bb0(%arg77: tensor<3x1xui32>, %arg78: tensor<3x1xui32>, %arg79: tensor<1x2xui32>, %arg80: tensor<1x2xui32>):
    %443 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
    %444 = "stablehlo.constant"() <{value = dense<5> : tensor<i64>}> : () -> tensor<i64>
    %445 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %446 = "stablehlo.constant"() <{value = dense<466688986> : tensor<ui32>}> : () -> tensor<ui32>
    %447 = "stablehlo.constant"() <{value = dense<[13, 15, 26, 6]> : tensor<4xui32>}> : () -> tensor<4xui32>
    %448 = "stablehlo.constant"() <{value = dense<[17, 29, 16, 24]> : tensor<4xui32>}> : () -> tensor<4xui32>
    %449 = "stablehlo.xor"(%arg77, %arg78) : (tensor<3x1xui32>, tensor<3x1xui32>) -> tensor<3x1xui32>
    %450 = "stablehlo.broadcast_in_dim"(%446) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x1xui32>
    %451 = "stablehlo.xor"(%449, %450) : (tensor<3x1xui32>, tensor<3x1xui32>) -> tensor<3x1xui32>
    %452 = "stablehlo.broadcast_in_dim"(%arg79) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x2xui32>) -> tensor<3x2xui32>
    %453 = "stablehlo.broadcast_in_dim"(%arg77) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<3x1xui32>) -> tensor<3x2xui32>
    %454 = "stablehlo.add"(%452, %453) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %455 = "stablehlo.broadcast_in_dim"(%arg80) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x2xui32>) -> tensor<3x2xui32>
    %456 = "stablehlo.broadcast_in_dim"(%arg78) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<3x1xui32>) -> tensor<3x2xui32>
    %457 = "stablehlo.add"(%455, %456) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %458:9 = "stablehlo.while"(%445, %445, %454, %457, %arg78, %451, %arg77, %447, %448) ({
    ^bb0(%arg90: tensor<i64>, %arg91: tensor<i64>, %arg92: tensor<3x2xui32>, %arg93: tensor<3x2xui32>, %arg94: tensor<3x1xui32>, %arg95: tensor<3x1xui32>, %arg96: tensor<3x1xui32>, %arg97: tensor<4xui32>, %arg98: tensor<4xui32>):
      %461 = "stablehlo.compare"(%arg90, %444) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
      "stablehlo.return"(%461) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg81: tensor<i64>, %arg82: tensor<i64>, %arg83: tensor<3x2xui32>, %arg84: tensor<3x2xui32>, %arg85: tensor<3x1xui32>, %arg86: tensor<3x1xui32>, %arg87: tensor<3x1xui32>, %arg88: tensor<4xui32>, %arg89: tensor<4xui32>):
      %459:8 = "func.call"(%arg82, %arg83, %arg84, %arg85, %arg86, %arg87, %arg88, %arg89) <{callee = @closed_call_2}> : (tensor<i64>, tensor<3x2xui32>, tensor<3x2xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i64>, tensor<3x2xui32>, tensor<3x2xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<4xui32>, tensor<4xui32>)
      %460 = "stablehlo.add"(%arg81, %443) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "stablehlo.return"(%460, %459#0, %459#1, %459#2, %459#3, %459#4, %459#5, %459#6, %459#7) : (tensor<i64>, tensor<i64>, tensor<3x2xui32>, tensor<3x2xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<4xui32>, tensor<4xui32>) -> ()
    }) : (tensor<i64>, tensor<i64>, tensor<3x2xui32>, tensor<3x2xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i64>, tensor<i64>, tensor<3x2xui32>, tensor<3x2xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<4xui32>, tensor<4xui32>)
    "func.return"(%458#2, %458#3) : (tensor<3x2xui32>, tensor<3x2xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i64>, tensor<3x2xui32>, tensor<3x2xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i64>, tensor<3x2xui32>, tensor<3x2xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<4xui32>, tensor<4xui32>), sym_name = "closed_call_2", sym_visibility = "private"}> ({
  ^bb0(%arg69: tensor<i64>, %arg70: tensor<3x2xui32>, %arg71: tensor<3x2xui32>, %arg72: tensor<3x1xui32>, %arg73: tensor<3x1xui32>, %arg74: tensor<3x1xui32>, %arg75: tensor<4xui32>, %arg76: tensor<4xui32>):
    %392 = "stablehlo.constant"() <{value = dense<32> : tensor<ui32>}> : () -> tensor<ui32>
    %393 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
    %394 = "stablehlo.add"(%arg69, %393) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %395 = "stablehlo.slice"(%arg75) <{limit_indices = array<i64: 1>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %396 = "stablehlo.reshape"(%395) : (tensor<1xui32>) -> tensor<ui32>
    %397 = "stablehlo.add"(%arg70, %arg71) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %398 = "stablehlo.broadcast_in_dim"(%396) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x2xui32>
    %399 = "stablehlo.shift_left"(%arg71, %398) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %400 = "stablehlo.subtract"(%392, %396) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %401 = "stablehlo.broadcast_in_dim"(%400) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x2xui32>
    %402 = "stablehlo.shift_right_logical"(%arg71, %401) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %403 = "stablehlo.or"(%399, %402) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %404 = "stablehlo.xor"(%397, %403) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %405 = "stablehlo.slice"(%arg75) <{limit_indices = array<i64: 2>, start_indices = array<i64: 1>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %406 = "stablehlo.reshape"(%405) : (tensor<1xui32>) -> tensor<ui32>
    %407 = "stablehlo.add"(%397, %404) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %408 = "stablehlo.broadcast_in_dim"(%406) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x2xui32>
    %409 = "stablehlo.shift_left"(%404, %408) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %410 = "stablehlo.subtract"(%392, %406) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %411 = "stablehlo.broadcast_in_dim"(%410) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x2xui32>
    %412 = "stablehlo.shift_right_logical"(%404, %411) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %413 = "stablehlo.or"(%409, %412) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %414 = "stablehlo.xor"(%407, %413) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %415 = "stablehlo.slice"(%arg75) <{limit_indices = array<i64: 3>, start_indices = array<i64: 2>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %416 = "stablehlo.reshape"(%415) : (tensor<1xui32>) -> tensor<ui32>
    %417 = "stablehlo.add"(%407, %414) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %418 = "stablehlo.broadcast_in_dim"(%416) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x2xui32>
    %419 = "stablehlo.shift_left"(%414, %418) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %420 = "stablehlo.subtract"(%392, %416) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %421 = "stablehlo.broadcast_in_dim"(%420) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x2xui32>
    %422 = "stablehlo.shift_right_logical"(%414, %421) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %423 = "stablehlo.or"(%419, %422) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %424 = "stablehlo.xor"(%417, %423) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %425 = "stablehlo.slice"(%arg75) <{limit_indices = array<i64: 4>, start_indices = array<i64: 3>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %426 = "stablehlo.reshape"(%425) : (tensor<1xui32>) -> tensor<ui32>
    %427 = "stablehlo.add"(%417, %424) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %428 = "stablehlo.broadcast_in_dim"(%426) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x2xui32>
    %429 = "stablehlo.shift_left"(%424, %428) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %430 = "stablehlo.subtract"(%392, %426) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %431 = "stablehlo.broadcast_in_dim"(%430) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x2xui32>
    %432 = "stablehlo.shift_right_logical"(%424, %431) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %433 = "stablehlo.or"(%429, %432) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %434 = "stablehlo.xor"(%427, %433) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %435 = "stablehlo.broadcast_in_dim"(%arg72) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<3x1xui32>) -> tensor<3x2xui32>
    %436 = "stablehlo.add"(%427, %435) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %437 = "stablehlo.broadcast_in_dim"(%arg73) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<3x1xui32>) -> tensor<3x2xui32>
    %438 = "stablehlo.add"(%434, %437) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    %439 = "stablehlo.add"(%arg69, %393) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %440 = "stablehlo.convert"(%439) : (tensor<i64>) -> tensor<ui32>
    %441 = "stablehlo.broadcast_in_dim"(%440) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x2xui32>
    %442 = "stablehlo.add"(%438, %441) : (tensor<3x2xui32>, tensor<3x2xui32>) -> tensor<3x2xui32>
    "func.return"(%394, %436, %442, %arg73, %arg74, %arg72, %arg76, %arg75) : (tensor<i64>, tensor<3x2xui32>, tensor<3x2xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<4xui32>, tensor<4xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x2xui32>) -> tensor<3x3x2xui32>, sym_name = "_threefry_split_3", sym_visibility = "private"}> ({
  ^bb0(%arg68: tensor<3x2xui32>):
    %371 = "stablehlo.constant"() <{value = dense<32> : tensor<ui64>}> : () -> tensor<ui64>
    %372 = "stablehlo.constant"() <{value = dense<1> : tensor<ui64>}> : () -> tensor<ui64>
    %373 = "stablehlo.slice"(%arg68) <{limit_indices = array<i64: 3, 1>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<3x2xui32>) -> tensor<3x1xui32>
    %374 = "stablehlo.reshape"(%373) : (tensor<3x1xui32>) -> tensor<3xui32>
    %375 = "stablehlo.slice"(%arg68) <{limit_indices = array<i64: 3, 2>, start_indices = array<i64: 0, 1>, strides = array<i64: 1, 1>}> : (tensor<3x2xui32>) -> tensor<3x1xui32>
    %376 = "stablehlo.reshape"(%375) : (tensor<3x1xui32>) -> tensor<3xui32>
    %377 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<3xui64>
    %378 = "stablehlo.broadcast_in_dim"(%372) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<3xui64>
    %379 = "stablehlo.multiply"(%378, %377) : (tensor<3xui64>, tensor<3xui64>) -> tensor<3xui64>
    %380 = "stablehlo.broadcast_in_dim"(%371) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<3xui64>
    %381 = "stablehlo.shift_right_logical"(%379, %380) : (tensor<3xui64>, tensor<3xui64>) -> tensor<3xui64>
    %382 = "stablehlo.convert"(%379) : (tensor<3xui64>) -> tensor<3xui32>
    %383 = "stablehlo.convert"(%381) : (tensor<3xui64>) -> tensor<3xui32>
    %384 = "stablehlo.broadcast_in_dim"(%383) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xui32>) -> tensor<1x3xui32>
    %385 = "stablehlo.broadcast_in_dim"(%382) <{broadcast_dimensions = array<i64: 1>}> : (tensor<3xui32>) -> tensor<1x3xui32>
    %386 = "stablehlo.broadcast_in_dim"(%374) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xui32>) -> tensor<3x1xui32>
    %387 = "stablehlo.broadcast_in_dim"(%376) <{broadcast_dimensions = array<i64: 0>}> : (tensor<3xui32>) -> tensor<3x1xui32>
    %388:2 = "func.call"(%386, %387, %384, %385) <{callee = @threefry2x32_4}> : (tensor<3x1xui32>, tensor<3x1xui32>, tensor<1x3xui32>, tensor<1x3xui32>) -> (tensor<3x3xui32>, tensor<3x3xui32>)
    %389 = "stablehlo.broadcast_in_dim"(%388#0) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<3x3xui32>) -> tensor<3x3x1xui32>
    %390 = "stablehlo.broadcast_in_dim"(%388#1) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<3x3xui32>) -> tensor<3x3x1xui32>
    %391 = "stablehlo.concatenate"(%389, %390) <{dimension = 2 : i64}> : (tensor<3x3x1xui32>, tensor<3x3x1xui32>) -> tensor<3x3x2xui32>
    "func.return"(%391) : (tensor<3x3x2xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x1xui32>, tensor<3x1xui32>, tensor<1x3xui32>, tensor<1x3xui32>) -> (tensor<3x3xui32>, tensor<3x3xui32>), sym_name = "threefry2x32_4", sym_visibility = "private"}> ({
  ^bb0(%arg46: tensor<3x1xui32>, %arg47: tensor<3x1xui32>, %arg48: tensor<1x3xui32>, %arg49: tensor<1x3xui32>):
    %352 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
    %353 = "stablehlo.constant"() <{value = dense<5> : tensor<i64>}> : () -> tensor<i64>
    %354 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %355 = "stablehlo.constant"() <{value = dense<466688986> : tensor<ui32>}> : () -> tensor<ui32>
    %356 = "stablehlo.constant"() <{value = dense<[13, 15, 26, 6]> : tensor<4xui32>}> : () -> tensor<4xui32>
    %357 = "stablehlo.constant"() <{value = dense<[17, 29, 16, 24]> : tensor<4xui32>}> : () -> tensor<4xui32>
    %358 = "stablehlo.xor"(%arg46, %arg47) : (tensor<3x1xui32>, tensor<3x1xui32>) -> tensor<3x1xui32>
    %359 = "stablehlo.broadcast_in_dim"(%355) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x1xui32>
    %360 = "stablehlo.xor"(%358, %359) : (tensor<3x1xui32>, tensor<3x1xui32>) -> tensor<3x1xui32>
    %361 = "stablehlo.broadcast_in_dim"(%arg48) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x3xui32>) -> tensor<3x3xui32>
    %362 = "stablehlo.broadcast_in_dim"(%arg46) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<3x1xui32>) -> tensor<3x3xui32>
    %363 = "stablehlo.add"(%361, %362) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %364 = "stablehlo.broadcast_in_dim"(%arg49) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<1x3xui32>) -> tensor<3x3xui32>
    %365 = "stablehlo.broadcast_in_dim"(%arg47) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<3x1xui32>) -> tensor<3x3xui32>
    %366 = "stablehlo.add"(%364, %365) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %367:9 = "stablehlo.while"(%354, %354, %363, %366, %arg47, %360, %arg46, %356, %357) ({
    ^bb0(%arg59: tensor<i64>, %arg60: tensor<i64>, %arg61: tensor<3x3xui32>, %arg62: tensor<3x3xui32>, %arg63: tensor<3x1xui32>, %arg64: tensor<3x1xui32>, %arg65: tensor<3x1xui32>, %arg66: tensor<4xui32>, %arg67: tensor<4xui32>):
      %370 = "stablehlo.compare"(%arg59, %353) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
      "stablehlo.return"(%370) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg50: tensor<i64>, %arg51: tensor<i64>, %arg52: tensor<3x3xui32>, %arg53: tensor<3x3xui32>, %arg54: tensor<3x1xui32>, %arg55: tensor<3x1xui32>, %arg56: tensor<3x1xui32>, %arg57: tensor<4xui32>, %arg58: tensor<4xui32>):
      %368:8 = "func.call"(%arg51, %arg52, %arg53, %arg54, %arg55, %arg56, %arg57, %arg58) <{callee = @closed_call_5}> : (tensor<i64>, tensor<3x3xui32>, tensor<3x3xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i64>, tensor<3x3xui32>, tensor<3x3xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<4xui32>, tensor<4xui32>)
      %369 = "stablehlo.add"(%arg50, %352) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "stablehlo.return"(%369, %368#0, %368#1, %368#2, %368#3, %368#4, %368#5, %368#6, %368#7) : (tensor<i64>, tensor<i64>, tensor<3x3xui32>, tensor<3x3xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<4xui32>, tensor<4xui32>) -> ()
    }) : (tensor<i64>, tensor<i64>, tensor<3x3xui32>, tensor<3x3xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i64>, tensor<i64>, tensor<3x3xui32>, tensor<3x3xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<4xui32>, tensor<4xui32>)
    "func.return"(%367#2, %367#3) : (tensor<3x3xui32>, tensor<3x3xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i64>, tensor<3x3xui32>, tensor<3x3xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i64>, tensor<3x3xui32>, tensor<3x3xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<4xui32>, tensor<4xui32>), sym_name = "closed_call_5", sym_visibility = "private"}> ({
  ^bb0(%arg38: tensor<i64>, %arg39: tensor<3x3xui32>, %arg40: tensor<3x3xui32>, %arg41: tensor<3x1xui32>, %arg42: tensor<3x1xui32>, %arg43: tensor<3x1xui32>, %arg44: tensor<4xui32>, %arg45: tensor<4xui32>):
    %301 = "stablehlo.constant"() <{value = dense<32> : tensor<ui32>}> : () -> tensor<ui32>
    %302 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
    %303 = "stablehlo.add"(%arg38, %302) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %304 = "stablehlo.slice"(%arg44) <{limit_indices = array<i64: 1>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %305 = "stablehlo.reshape"(%304) : (tensor<1xui32>) -> tensor<ui32>
    %306 = "stablehlo.add"(%arg39, %arg40) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %307 = "stablehlo.broadcast_in_dim"(%305) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x3xui32>
    %308 = "stablehlo.shift_left"(%arg40, %307) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %309 = "stablehlo.subtract"(%301, %305) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %310 = "stablehlo.broadcast_in_dim"(%309) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x3xui32>
    %311 = "stablehlo.shift_right_logical"(%arg40, %310) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %312 = "stablehlo.or"(%308, %311) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %313 = "stablehlo.xor"(%306, %312) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %314 = "stablehlo.slice"(%arg44) <{limit_indices = array<i64: 2>, start_indices = array<i64: 1>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %315 = "stablehlo.reshape"(%314) : (tensor<1xui32>) -> tensor<ui32>
    %316 = "stablehlo.add"(%306, %313) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %317 = "stablehlo.broadcast_in_dim"(%315) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x3xui32>
    %318 = "stablehlo.shift_left"(%313, %317) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %319 = "stablehlo.subtract"(%301, %315) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %320 = "stablehlo.broadcast_in_dim"(%319) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x3xui32>
    %321 = "stablehlo.shift_right_logical"(%313, %320) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %322 = "stablehlo.or"(%318, %321) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %323 = "stablehlo.xor"(%316, %322) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %324 = "stablehlo.slice"(%arg44) <{limit_indices = array<i64: 3>, start_indices = array<i64: 2>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %325 = "stablehlo.reshape"(%324) : (tensor<1xui32>) -> tensor<ui32>
    %326 = "stablehlo.add"(%316, %323) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %327 = "stablehlo.broadcast_in_dim"(%325) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x3xui32>
    %328 = "stablehlo.shift_left"(%323, %327) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %329 = "stablehlo.subtract"(%301, %325) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %330 = "stablehlo.broadcast_in_dim"(%329) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x3xui32>
    %331 = "stablehlo.shift_right_logical"(%323, %330) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %332 = "stablehlo.or"(%328, %331) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %333 = "stablehlo.xor"(%326, %332) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %334 = "stablehlo.slice"(%arg44) <{limit_indices = array<i64: 4>, start_indices = array<i64: 3>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %335 = "stablehlo.reshape"(%334) : (tensor<1xui32>) -> tensor<ui32>
    %336 = "stablehlo.add"(%326, %333) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %337 = "stablehlo.broadcast_in_dim"(%335) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x3xui32>
    %338 = "stablehlo.shift_left"(%333, %337) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %339 = "stablehlo.subtract"(%301, %335) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %340 = "stablehlo.broadcast_in_dim"(%339) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x3xui32>
    %341 = "stablehlo.shift_right_logical"(%333, %340) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %342 = "stablehlo.or"(%338, %341) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %343 = "stablehlo.xor"(%336, %342) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %344 = "stablehlo.broadcast_in_dim"(%arg41) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<3x1xui32>) -> tensor<3x3xui32>
    %345 = "stablehlo.add"(%336, %344) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %346 = "stablehlo.broadcast_in_dim"(%arg42) <{broadcast_dimensions = array<i64: 0, 1>}> : (tensor<3x1xui32>) -> tensor<3x3xui32>
    %347 = "stablehlo.add"(%343, %346) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    %348 = "stablehlo.add"(%arg38, %302) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %349 = "stablehlo.convert"(%348) : (tensor<i64>) -> tensor<ui32>
    %350 = "stablehlo.broadcast_in_dim"(%349) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3x3xui32>
    %351 = "stablehlo.add"(%347, %350) : (tensor<3x3xui32>, tensor<3x3xui32>) -> tensor<3x3xui32>
    "func.return"(%303, %345, %351, %arg42, %arg43, %arg41, %arg45, %arg44) : (tensor<i64>, tensor<3x3xui32>, tensor<3x3xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<3x1xui32>, tensor<4xui32>, tensor<4xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x2xui32>) -> tensor<3xf64>, sym_name = "_normal", sym_visibility = "private"}> ({
  ^bb0(%arg37: tensor<3x2xui32>):
    %300 = "func.call"(%arg37) <{callee = @_normal_real}> : (tensor<3x2xui32>) -> tensor<3xf64>
    "func.return"(%300) : (tensor<3xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x2xui32>) -> tensor<3xf64>, sym_name = "_normal_real", sym_visibility = "private"}> ({
  ^bb0(%arg36: tensor<3x2xui32>):
    %126 = "stablehlo.constant"() <{value = dense<0x7FF0000000000000> : tensor<3xf64>}> : () -> tensor<3xf64>
    %127 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<3xf64>}> : () -> tensor<3xf64>
    %128 = "stablehlo.constant"() <{value = dense<1.6536545626831027> : tensor<3xf64>}> : () -> tensor<3xf64>
    %129 = "stablehlo.constant"() <{value = dense<0.24015818242558962> : tensor<3xf64>}> : () -> tensor<3xf64>
    %130 = "stablehlo.constant"() <{value = dense<-0.0060336708714301491> : tensor<3xf64>}> : () -> tensor<3xf64>
    %131 = "stablehlo.constant"() <{value = dense<-7.4070253416626698E-4> : tensor<3xf64>}> : () -> tensor<3xf64>
    %132 = "stablehlo.constant"() <{value = dense<3.0838856104922208> : tensor<3xf64>}> : () -> tensor<3xf64>
    %133 = "stablehlo.constant"() <{value = dense<1.8673420803405714E-4> : tensor<3xf64>}> : () -> tensor<3xf64>
    %134 = "stablehlo.constant"() <{value = dense<1.0052589676941592> : tensor<3xf64>}> : () -> tensor<3xf64>
    %135 = "stablehlo.constant"() <{value = dense<-1.3882523362786469E-5> : tensor<3xf64>}> : () -> tensor<3xf64>
    %136 = "stablehlo.constant"() <{value = dense<4.8499064014085844> : tensor<3xf64>}> : () -> tensor<3xf64>
    %137 = "stablehlo.constant"() <{value = dense<0.0053709145535900636> : tensor<3xf64>}> : () -> tensor<3xf64>
    %138 = "stablehlo.constant"() <{value = dense<-1.3654692000834679E-6> : tensor<3xf64>}> : () -> tensor<3xf64>
    %139 = "stablehlo.constant"() <{value = dense<1.0103004648645344> : tensor<3xf64>}> : () -> tensor<3xf64>
    %140 = "stablehlo.constant"() <{value = dense<-0.0037512085075692412> : tensor<3xf64>}> : () -> tensor<3xf64>
    %141 = "stablehlo.constant"() <{value = dense<4.2347877827932404E-7> : tensor<3xf64>}> : () -> tensor<3xf64>
    %142 = "stablehlo.constant"() <{value = dense<-1.3871931833623122E-4> : tensor<3xf64>}> : () -> tensor<3xf64>
    %143 = "stablehlo.constant"() <{value = dense<0.0024914420961078508> : tensor<3xf64>}> : () -> tensor<3xf64>
    %144 = "stablehlo.constant"() <{value = dense<-2.9070369957882005E-8> : tensor<3xf64>}> : () -> tensor<3xf64>
    %145 = "stablehlo.constant"() <{value = dense<-2.1503011930044477E-4> : tensor<3xf64>}> : () -> tensor<3xf64>
    %146 = "stablehlo.constant"() <{value = dense<-0.0016882755560235047> : tensor<3xf64>}> : () -> tensor<3xf64>
    %147 = "stablehlo.constant"() <{value = dense<-4.1126339803469837E-9> : tensor<3xf64>}> : () -> tensor<3xf64>
    %148 = "stablehlo.constant"() <{value = dense<7.5995277030017761E-5> : tensor<3xf64>}> : () -> tensor<3xf64>
    %149 = "stablehlo.constant"() <{value = dense<9.5328937973738049E-4> : tensor<3xf64>}> : () -> tensor<3xf64>
    %150 = "stablehlo.constant"() <{value = dense<1.0512122733215323E-9> : tensor<3xf64>}> : () -> tensor<3xf64>
    %151 = "stablehlo.constant"() <{value = dense<-1.9681778105531671E-5> : tensor<3xf64>}> : () -> tensor<3xf64>
    %152 = "stablehlo.constant"() <{value = dense<-3.5503752036284748E-4> : tensor<3xf64>}> : () -> tensor<3xf64>
    %153 = "stablehlo.constant"() <{value = dense<-5.4154120542946279E-11> : tensor<3xf64>}> : () -> tensor<3xf64>
    %154 = "stablehlo.constant"() <{value = dense<4.5260625972231537E-6> : tensor<3xf64>}> : () -> tensor<3xf64>
    %155 = "stablehlo.constant"() <{value = dense<2.4031110387097894E-5> : tensor<3xf64>}> : () -> tensor<3xf64>
    %156 = "stablehlo.constant"() <{value = dense<-1.2975133253453532E-11> : tensor<3xf64>}> : () -> tensor<3xf64>
    %157 = "stablehlo.constant"() <{value = dense<-9.9298272942317003E-7> : tensor<3xf64>}> : () -> tensor<3xf64>
    %158 = "stablehlo.constant"() <{value = dense<6.8284851459573175E-5> : tensor<3xf64>}> : () -> tensor<3xf64>
    %159 = "stablehlo.constant"() <{value = dense<2.6335093153082323E-12> : tensor<3xf64>}> : () -> tensor<3xf64>
    %160 = "stablehlo.constant"() <{value = dense<2.2900482228026655E-7> : tensor<3xf64>}> : () -> tensor<3xf64>
    %161 = "stablehlo.constant"() <{value = dense<-4.7318229009055734E-5> : tensor<3xf64>}> : () -> tensor<3xf64>
    %162 = "stablehlo.constant"() <{value = dense<-8.1519341976054721E-14> : tensor<3xf64>}> : () -> tensor<3xf64>
    %163 = "stablehlo.constant"() <{value = dense<-6.7711997758452339E-8> : tensor<3xf64>}> : () -> tensor<3xf64>
    %164 = "stablehlo.constant"() <{value = dense<1.2475304481671779E-5> : tensor<3xf64>}> : () -> tensor<3xf64>
    %165 = "stablehlo.constant"() <{value = dense<-4.0545662729752069E-14> : tensor<3xf64>}> : () -> tensor<3xf64>
    %166 = "stablehlo.constant"() <{value = dense<2.9147953450901081E-8> : tensor<3xf64>}> : () -> tensor<3xf64>
    %167 = "stablehlo.constant"() <{value = dense<2.9234449089955446E-6> : tensor<3xf64>}> : () -> tensor<3xf64>
    %168 = "stablehlo.constant"() <{value = dense<6.6376381343583238E-15> : tensor<3xf64>}> : () -> tensor<3xf64>
    %169 = "stablehlo.constant"() <{value = dense<-1.496002662714924E-8> : tensor<3xf64>}> : () -> tensor<3xf64>
    %170 = "stablehlo.constant"() <{value = dense<-4.013867526981546E-6> : tensor<3xf64>}> : () -> tensor<3xf64>
    %171 = "stablehlo.constant"() <{value = dense<2.0972767875968562E-17> : tensor<3xf64>}> : () -> tensor<3xf64>
    %172 = "stablehlo.constant"() <{value = dense<7.6157012080783394E-9> : tensor<3xf64>}> : () -> tensor<3xf64>
    %173 = "stablehlo.constant"() <{value = dense<1.5027403968909828E-6> : tensor<3xf64>}> : () -> tensor<3xf64>
    %174 = "stablehlo.constant"() <{value = dense<-1.3331716628546209E-16> : tensor<3xf64>}> : () -> tensor<3xf64>
    %175 = "stablehlo.constant"() <{value = dense<-3.789465440126737E-9> : tensor<3xf64>}> : () -> tensor<3xf64>
    %176 = "stablehlo.constant"() <{value = dense<1.8239629214389228E-8> : tensor<3xf64>}> : () -> tensor<3xf64>
    %177 = "stablehlo.constant"() <{value = dense<1.1157877678025181E-17> : tensor<3xf64>}> : () -> tensor<3xf64>
    %178 = "stablehlo.constant"() <{value = dense<1.5076572693500548E-9> : tensor<3xf64>}> : () -> tensor<3xf64>
    %179 = "stablehlo.constant"() <{value = dense<-2.7517406297064545E-7> : tensor<3xf64>}> : () -> tensor<3xf64>
    %180 = "stablehlo.constant"() <{value = dense<1.28584807152564E-18> : tensor<3xf64>}> : () -> tensor<3xf64>
    %181 = "stablehlo.constant"() <{value = dense<-2.5556418169965252E-10> : tensor<3xf64>}> : () -> tensor<3xf64>
    %182 = "stablehlo.constant"() <{value = dense<9.075656193888539E-8> : tensor<3xf64>}> : () -> tensor<3xf64>
    %183 = "stablehlo.constant"() <{value = dense<-1.6850591381820166E-19> : tensor<3xf64>}> : () -> tensor<3xf64>
    %184 = "stablehlo.constant"() <{value = dense<-2.7109920616438573E-11> : tensor<3xf64>}> : () -> tensor<3xf64>
    %185 = "stablehlo.constant"() <{value = dense<2.2137376921775787E-9> : tensor<3xf64>}> : () -> tensor<3xf64>
    %186 = "stablehlo.constant"() <{value = dense<-3.6444120640178197E-21> : tensor<3xf64>}> : () -> tensor<3xf64>
    %187 = "stablehlo.constant"() <{value = dense<5.000000e+00> : tensor<3xf64>}> : () -> tensor<3xf64>
    %188 = "stablehlo.constant"() <{value = dense<3.250000e+00> : tensor<3xf64>}> : () -> tensor<3xf64>
    %189 = "stablehlo.constant"() <{value = dense<3.125000e+00> : tensor<3xf64>}> : () -> tensor<3xf64>
    %190 = "stablehlo.constant"() <{value = dense<1.600000e+01> : tensor<3xf64>}> : () -> tensor<3xf64>
    %191 = "stablehlo.constant"() <{value = dense<6.250000e+00> : tensor<3xf64>}> : () -> tensor<3xf64>
    %192 = "stablehlo.constant"() <{value = dense<1.4142135623730951> : tensor<f64>}> : () -> tensor<f64>
    %193 = "stablehlo.constant"() <{value = dense<-0.99999999999999988> : tensor<f64>}> : () -> tensor<f64>
    %194 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %195 = "func.call"(%arg36, %193, %194) <{callee = @_uniform}> : (tensor<3x2xui32>, tensor<f64>, tensor<f64>) -> tensor<3xf64>
    %196 = "stablehlo.negate"(%195) : (tensor<3xf64>) -> tensor<3xf64>
    %197 = "stablehlo.multiply"(%195, %196) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %198 = "stablehlo.log_plus_one"(%197) : (tensor<3xf64>) -> tensor<3xf64>
    %199 = "stablehlo.negate"(%198) : (tensor<3xf64>) -> tensor<3xf64>
    %200 = "stablehlo.compare"(%199, %191) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
    %201 = "stablehlo.compare"(%199, %190) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
    %202 = "stablehlo.sqrt"(%199) : (tensor<3xf64>) -> tensor<3xf64>
    %203 = "stablehlo.subtract"(%199, %189) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %204 = "stablehlo.select"(%201, %188, %187) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %205 = "stablehlo.subtract"(%202, %204) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %206 = "stablehlo.select"(%200, %203, %205) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %207 = "stablehlo.select"(%200, %186, %185) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %208 = "stablehlo.select"(%201, %207, %184) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %209 = "stablehlo.select"(%200, %183, %182) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %210 = "stablehlo.select"(%201, %209, %181) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %211 = "stablehlo.multiply"(%208, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %212 = "stablehlo.add"(%210, %211) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %213 = "stablehlo.select"(%200, %180, %179) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %214 = "stablehlo.select"(%201, %213, %178) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %215 = "stablehlo.multiply"(%212, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %216 = "stablehlo.add"(%214, %215) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %217 = "stablehlo.select"(%200, %177, %176) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %218 = "stablehlo.select"(%201, %217, %175) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %219 = "stablehlo.multiply"(%216, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %220 = "stablehlo.add"(%218, %219) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %221 = "stablehlo.select"(%200, %174, %173) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %222 = "stablehlo.select"(%201, %221, %172) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %223 = "stablehlo.multiply"(%220, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %224 = "stablehlo.add"(%222, %223) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %225 = "stablehlo.select"(%200, %171, %170) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %226 = "stablehlo.select"(%201, %225, %169) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %227 = "stablehlo.multiply"(%224, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %228 = "stablehlo.add"(%226, %227) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %229 = "stablehlo.select"(%200, %168, %167) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %230 = "stablehlo.select"(%201, %229, %166) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %231 = "stablehlo.multiply"(%228, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %232 = "stablehlo.add"(%230, %231) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %233 = "stablehlo.select"(%200, %165, %164) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %234 = "stablehlo.select"(%201, %233, %163) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %235 = "stablehlo.multiply"(%232, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %236 = "stablehlo.add"(%234, %235) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %237 = "stablehlo.select"(%200, %162, %161) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %238 = "stablehlo.select"(%201, %237, %160) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %239 = "stablehlo.multiply"(%236, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %240 = "stablehlo.add"(%238, %239) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %241 = "stablehlo.select"(%200, %159, %158) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %242 = "stablehlo.select"(%201, %241, %157) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %243 = "stablehlo.multiply"(%240, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %244 = "stablehlo.add"(%242, %243) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %245 = "stablehlo.select"(%200, %156, %155) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %246 = "stablehlo.select"(%201, %245, %154) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %247 = "stablehlo.multiply"(%244, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %248 = "stablehlo.add"(%246, %247) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %249 = "stablehlo.select"(%200, %153, %152) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %250 = "stablehlo.select"(%201, %249, %151) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %251 = "stablehlo.multiply"(%248, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %252 = "stablehlo.add"(%250, %251) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %253 = "stablehlo.select"(%200, %150, %149) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %254 = "stablehlo.select"(%201, %253, %148) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %255 = "stablehlo.multiply"(%252, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %256 = "stablehlo.add"(%254, %255) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %257 = "stablehlo.select"(%200, %147, %146) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %258 = "stablehlo.select"(%201, %257, %145) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %259 = "stablehlo.multiply"(%256, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %260 = "stablehlo.add"(%258, %259) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %261 = "stablehlo.select"(%200, %144, %143) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %262 = "stablehlo.select"(%201, %261, %142) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %263 = "stablehlo.multiply"(%260, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %264 = "stablehlo.add"(%262, %263) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %265 = "stablehlo.select"(%200, %141, %140) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %266 = "stablehlo.select"(%201, %265, %139) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %267 = "stablehlo.multiply"(%264, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %268 = "stablehlo.add"(%266, %267) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %269 = "stablehlo.select"(%200, %138, %137) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %270 = "stablehlo.select"(%201, %269, %136) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %271 = "stablehlo.multiply"(%268, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %272 = "stablehlo.add"(%270, %271) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %273 = "stablehlo.select"(%200, %135, %134) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %274 = "stablehlo.multiply"(%272, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %275 = "stablehlo.add"(%273, %274) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %276 = "stablehlo.select"(%201, %275, %272) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %277 = "stablehlo.select"(%200, %133, %132) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %278 = "stablehlo.multiply"(%276, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %279 = "stablehlo.add"(%277, %278) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %280 = "stablehlo.select"(%201, %279, %276) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %281 = "stablehlo.multiply"(%280, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %282 = "stablehlo.add"(%131, %281) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %283 = "stablehlo.select"(%200, %282, %280) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %284 = "stablehlo.multiply"(%283, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %285 = "stablehlo.add"(%130, %284) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %286 = "stablehlo.select"(%200, %285, %283) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %287 = "stablehlo.multiply"(%286, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %288 = "stablehlo.add"(%129, %287) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %289 = "stablehlo.select"(%200, %288, %286) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %290 = "stablehlo.multiply"(%289, %206) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %291 = "stablehlo.add"(%128, %290) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %292 = "stablehlo.select"(%200, %291, %289) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %293 = "stablehlo.multiply"(%292, %195) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %294 = "stablehlo.abs"(%195) : (tensor<3xf64>) -> tensor<3xf64>
    %295 = "stablehlo.compare"(%294, %127) <{comparison_direction = #stablehlo<comparison_direction EQ>}> : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xi1>
    %296 = "stablehlo.multiply"(%195, %126) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %297 = "stablehlo.select"(%295, %296, %293) : (tensor<3xi1>, tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %298 = "stablehlo.broadcast_in_dim"(%192) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %299 = "stablehlo.multiply"(%298, %297) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    "func.return"(%299) : (tensor<3xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x2xui32>, tensor<f64>, tensor<f64>) -> tensor<3xf64>, sym_name = "_uniform", sym_visibility = "private"}> ({
  ^bb0(%arg33: tensor<3x2xui32>, %arg34: tensor<f64>, %arg35: tensor<f64>):
    %97 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %98 = "stablehlo.constant"() <{value = dense<4607182418800017408> : tensor<ui64>}> : () -> tensor<ui64>
    %99 = "stablehlo.constant"() <{value = dense<12> : tensor<ui64>}> : () -> tensor<ui64>
    %100 = "stablehlo.constant"() <{value = dense<32> : tensor<ui64>}> : () -> tensor<ui64>
    %101 = "stablehlo.constant"() <{value = dense<0> : tensor<ui32>}> : () -> tensor<ui32>
    %102 = "stablehlo.slice"(%arg33) <{limit_indices = array<i64: 3, 1>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<3x2xui32>) -> tensor<3x1xui32>
    %103 = "stablehlo.reshape"(%102) : (tensor<3x1xui32>) -> tensor<3xui32>
    %104 = "stablehlo.slice"(%arg33) <{limit_indices = array<i64: 3, 2>, start_indices = array<i64: 0, 1>, strides = array<i64: 1, 1>}> : (tensor<3x2xui32>) -> tensor<3x1xui32>
    %105 = "stablehlo.reshape"(%104) : (tensor<3x1xui32>) -> tensor<3xui32>
    %106:2 = "func.call"(%103, %105, %101, %101) <{callee = @threefry2x32_6}> : (tensor<3xui32>, tensor<3xui32>, tensor<ui32>, tensor<ui32>) -> (tensor<3xui32>, tensor<3xui32>)
    %107 = "stablehlo.convert"(%106#0) : (tensor<3xui32>) -> tensor<3xui64>
    %108 = "stablehlo.convert"(%106#1) : (tensor<3xui32>) -> tensor<3xui64>
    %109 = "stablehlo.broadcast_in_dim"(%100) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<3xui64>
    %110 = "stablehlo.shift_left"(%107, %109) : (tensor<3xui64>, tensor<3xui64>) -> tensor<3xui64>
    %111 = "stablehlo.or"(%110, %108) : (tensor<3xui64>, tensor<3xui64>) -> tensor<3xui64>
    %112 = "stablehlo.broadcast_in_dim"(%99) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<3xui64>
    %113 = "stablehlo.shift_right_logical"(%111, %112) : (tensor<3xui64>, tensor<3xui64>) -> tensor<3xui64>
    %114 = "stablehlo.broadcast_in_dim"(%98) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<3xui64>
    %115 = "stablehlo.or"(%113, %114) : (tensor<3xui64>, tensor<3xui64>) -> tensor<3xui64>
    %116 = "stablehlo.bitcast_convert"(%115) : (tensor<3xui64>) -> tensor<3xf64>
    %117 = "stablehlo.broadcast_in_dim"(%97) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %118 = "stablehlo.subtract"(%116, %117) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %119 = "stablehlo.subtract"(%arg35, %arg34) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %120 = "stablehlo.broadcast_in_dim"(%119) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %121 = "stablehlo.multiply"(%118, %120) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %122 = "stablehlo.broadcast_in_dim"(%arg34) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %123 = "stablehlo.add"(%121, %122) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %124 = "stablehlo.broadcast_in_dim"(%arg34) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %125 = "stablehlo.maximum"(%124, %123) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    "func.return"(%125) : (tensor<3xf64>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3xui32>, tensor<3xui32>, tensor<ui32>, tensor<ui32>) -> (tensor<3xui32>, tensor<3xui32>), sym_name = "threefry2x32_6", sym_visibility = "private"}> ({
  ^bb0(%arg11: tensor<3xui32>, %arg12: tensor<3xui32>, %arg13: tensor<ui32>, %arg14: tensor<ui32>):
    %80 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
    %81 = "stablehlo.constant"() <{value = dense<5> : tensor<i64>}> : () -> tensor<i64>
    %82 = "stablehlo.constant"() <{value = dense<0> : tensor<i64>}> : () -> tensor<i64>
    %83 = "stablehlo.constant"() <{value = dense<466688986> : tensor<ui32>}> : () -> tensor<ui32>
    %84 = "stablehlo.constant"() <{value = dense<[13, 15, 26, 6]> : tensor<4xui32>}> : () -> tensor<4xui32>
    %85 = "stablehlo.constant"() <{value = dense<[17, 29, 16, 24]> : tensor<4xui32>}> : () -> tensor<4xui32>
    %86 = "stablehlo.xor"(%arg11, %arg12) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %87 = "stablehlo.broadcast_in_dim"(%83) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3xui32>
    %88 = "stablehlo.xor"(%86, %87) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %89 = "stablehlo.broadcast_in_dim"(%arg13) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3xui32>
    %90 = "stablehlo.add"(%89, %arg11) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %91 = "stablehlo.broadcast_in_dim"(%arg14) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3xui32>
    %92 = "stablehlo.add"(%91, %arg12) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %93:9 = "stablehlo.while"(%82, %82, %90, %92, %arg12, %88, %arg11, %84, %85) ({
    ^bb0(%arg24: tensor<i64>, %arg25: tensor<i64>, %arg26: tensor<3xui32>, %arg27: tensor<3xui32>, %arg28: tensor<3xui32>, %arg29: tensor<3xui32>, %arg30: tensor<3xui32>, %arg31: tensor<4xui32>, %arg32: tensor<4xui32>):
      %96 = "stablehlo.compare"(%arg24, %81) <{compare_type = #stablehlo<comparison_type SIGNED>, comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i64>, tensor<i64>) -> tensor<i1>
      "stablehlo.return"(%96) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg15: tensor<i64>, %arg16: tensor<i64>, %arg17: tensor<3xui32>, %arg18: tensor<3xui32>, %arg19: tensor<3xui32>, %arg20: tensor<3xui32>, %arg21: tensor<3xui32>, %arg22: tensor<4xui32>, %arg23: tensor<4xui32>):
      %94:8 = "func.call"(%arg16, %arg17, %arg18, %arg19, %arg20, %arg21, %arg22, %arg23) <{callee = @closed_call_7}> : (tensor<i64>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i64>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<4xui32>, tensor<4xui32>)
      %95 = "stablehlo.add"(%arg15, %80) : (tensor<i64>, tensor<i64>) -> tensor<i64>
      "stablehlo.return"(%95, %94#0, %94#1, %94#2, %94#3, %94#4, %94#5, %94#6, %94#7) : (tensor<i64>, tensor<i64>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<4xui32>, tensor<4xui32>) -> ()
    }) : (tensor<i64>, tensor<i64>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i64>, tensor<i64>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<4xui32>, tensor<4xui32>)
    "func.return"(%93#2, %93#3) : (tensor<3xui32>, tensor<3xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<i64>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<4xui32>, tensor<4xui32>) -> (tensor<i64>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<4xui32>, tensor<4xui32>), sym_name = "closed_call_7", sym_visibility = "private"}> ({
  ^bb0(%arg3: tensor<i64>, %arg4: tensor<3xui32>, %arg5: tensor<3xui32>, %arg6: tensor<3xui32>, %arg7: tensor<3xui32>, %arg8: tensor<3xui32>, %arg9: tensor<4xui32>, %arg10: tensor<4xui32>):
    %31 = "stablehlo.constant"() <{value = dense<32> : tensor<ui32>}> : () -> tensor<ui32>
    %32 = "stablehlo.constant"() <{value = dense<1> : tensor<i64>}> : () -> tensor<i64>
    %33 = "stablehlo.add"(%arg3, %32) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %34 = "stablehlo.slice"(%arg9) <{limit_indices = array<i64: 1>, start_indices = array<i64: 0>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %35 = "stablehlo.reshape"(%34) : (tensor<1xui32>) -> tensor<ui32>
    %36 = "stablehlo.add"(%arg4, %arg5) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %37 = "stablehlo.broadcast_in_dim"(%35) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3xui32>
    %38 = "stablehlo.shift_left"(%arg5, %37) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %39 = "stablehlo.subtract"(%31, %35) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %40 = "stablehlo.broadcast_in_dim"(%39) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3xui32>
    %41 = "stablehlo.shift_right_logical"(%arg5, %40) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %42 = "stablehlo.or"(%38, %41) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %43 = "stablehlo.xor"(%36, %42) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %44 = "stablehlo.slice"(%arg9) <{limit_indices = array<i64: 2>, start_indices = array<i64: 1>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %45 = "stablehlo.reshape"(%44) : (tensor<1xui32>) -> tensor<ui32>
    %46 = "stablehlo.add"(%36, %43) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %47 = "stablehlo.broadcast_in_dim"(%45) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3xui32>
    %48 = "stablehlo.shift_left"(%43, %47) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %49 = "stablehlo.subtract"(%31, %45) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %50 = "stablehlo.broadcast_in_dim"(%49) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3xui32>
    %51 = "stablehlo.shift_right_logical"(%43, %50) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %52 = "stablehlo.or"(%48, %51) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %53 = "stablehlo.xor"(%46, %52) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %54 = "stablehlo.slice"(%arg9) <{limit_indices = array<i64: 3>, start_indices = array<i64: 2>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %55 = "stablehlo.reshape"(%54) : (tensor<1xui32>) -> tensor<ui32>
    %56 = "stablehlo.add"(%46, %53) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %57 = "stablehlo.broadcast_in_dim"(%55) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3xui32>
    %58 = "stablehlo.shift_left"(%53, %57) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %59 = "stablehlo.subtract"(%31, %55) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %60 = "stablehlo.broadcast_in_dim"(%59) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3xui32>
    %61 = "stablehlo.shift_right_logical"(%53, %60) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %62 = "stablehlo.or"(%58, %61) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %63 = "stablehlo.xor"(%56, %62) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %64 = "stablehlo.slice"(%arg9) <{limit_indices = array<i64: 4>, start_indices = array<i64: 3>, strides = array<i64: 1>}> : (tensor<4xui32>) -> tensor<1xui32>
    %65 = "stablehlo.reshape"(%64) : (tensor<1xui32>) -> tensor<ui32>
    %66 = "stablehlo.add"(%56, %63) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %67 = "stablehlo.broadcast_in_dim"(%65) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3xui32>
    %68 = "stablehlo.shift_left"(%63, %67) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %69 = "stablehlo.subtract"(%31, %65) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %70 = "stablehlo.broadcast_in_dim"(%69) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3xui32>
    %71 = "stablehlo.shift_right_logical"(%63, %70) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %72 = "stablehlo.or"(%68, %71) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %73 = "stablehlo.xor"(%66, %72) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %74 = "stablehlo.add"(%66, %arg6) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %75 = "stablehlo.add"(%73, %arg7) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    %76 = "stablehlo.add"(%arg3, %32) : (tensor<i64>, tensor<i64>) -> tensor<i64>
    %77 = "stablehlo.convert"(%76) : (tensor<i64>) -> tensor<ui32>
    %78 = "stablehlo.broadcast_in_dim"(%77) <{broadcast_dimensions = array<i64>}> : (tensor<ui32>) -> tensor<3xui32>
    %79 = "stablehlo.add"(%75, %78) : (tensor<3xui32>, tensor<3xui32>) -> tensor<3xui32>
    "func.return"(%33, %74, %79, %arg7, %arg8, %arg6, %arg10, %arg9) : (tensor<i64>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<3xui32>, tensor<4xui32>, tensor<4xui32>) -> ()
  }) : () -> ()
  "func.func"() <{function_type = (tensor<3x2xui32>, tensor<f64>, tensor<f64>) -> tensor<3xf64>, sym_name = "_uniform_8", sym_visibility = "private"}> ({
  ^bb0(%arg0: tensor<3x2xui32>, %arg1: tensor<f64>, %arg2: tensor<f64>):
    %0 = "stablehlo.constant"() <{value = dense<1.000000e+00> : tensor<f64>}> : () -> tensor<f64>
    %1 = "stablehlo.constant"() <{value = dense<4607182418800017408> : tensor<ui64>}> : () -> tensor<ui64>
    %2 = "stablehlo.constant"() <{value = dense<12> : tensor<ui64>}> : () -> tensor<ui64>
    %3 = "stablehlo.constant"() <{value = dense<32> : tensor<ui64>}> : () -> tensor<ui64>
    %4 = "stablehlo.constant"() <{value = dense<0> : tensor<ui32>}> : () -> tensor<ui32>
    %5 = "stablehlo.convert"(%arg1) : (tensor<f64>) -> tensor<f64>
    %6 = "stablehlo.convert"(%arg2) : (tensor<f64>) -> tensor<f64>
    %7 = "stablehlo.slice"(%arg0) <{limit_indices = array<i64: 3, 1>, start_indices = array<i64: 0, 0>, strides = array<i64: 1, 1>}> : (tensor<3x2xui32>) -> tensor<3x1xui32>
    %8 = "stablehlo.reshape"(%7) : (tensor<3x1xui32>) -> tensor<3xui32>
    %9 = "stablehlo.slice"(%arg0) <{limit_indices = array<i64: 3, 2>, start_indices = array<i64: 0, 1>, strides = array<i64: 1, 1>}> : (tensor<3x2xui32>) -> tensor<3x1xui32>
    %10 = "stablehlo.reshape"(%9) : (tensor<3x1xui32>) -> tensor<3xui32>
    %11:2 = "func.call"(%8, %10, %4, %4) <{callee = @threefry2x32_6}> : (tensor<3xui32>, tensor<3xui32>, tensor<ui32>, tensor<ui32>) -> (tensor<3xui32>, tensor<3xui32>)
    %12 = "stablehlo.convert"(%11#0) : (tensor<3xui32>) -> tensor<3xui64>
    %13 = "stablehlo.convert"(%11#1) : (tensor<3xui32>) -> tensor<3xui64>
    %14 = "stablehlo.broadcast_in_dim"(%3) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<3xui64>
    %15 = "stablehlo.shift_left"(%12, %14) : (tensor<3xui64>, tensor<3xui64>) -> tensor<3xui64>
    %16 = "stablehlo.or"(%15, %13) : (tensor<3xui64>, tensor<3xui64>) -> tensor<3xui64>
    %17 = "stablehlo.broadcast_in_dim"(%2) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<3xui64>
    %18 = "stablehlo.shift_right_logical"(%16, %17) : (tensor<3xui64>, tensor<3xui64>) -> tensor<3xui64>
    %19 = "stablehlo.broadcast_in_dim"(%1) <{broadcast_dimensions = array<i64>}> : (tensor<ui64>) -> tensor<3xui64>
    %20 = "stablehlo.or"(%18, %19) : (tensor<3xui64>, tensor<3xui64>) -> tensor<3xui64>
    %21 = "stablehlo.bitcast_convert"(%20) : (tensor<3xui64>) -> tensor<3xf64>
    %22 = "stablehlo.broadcast_in_dim"(%0) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %23 = "stablehlo.subtract"(%21, %22) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %24 = "stablehlo.subtract"(%6, %5) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %25 = "stablehlo.broadcast_in_dim"(%24) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %26 = "stablehlo.multiply"(%23, %25) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %27 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %28 = "stablehlo.add"(%26, %27) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    %29 = "stablehlo.broadcast_in_dim"(%5) <{broadcast_dimensions = array<i64>}> : (tensor<f64>) -> tensor<3xf64>
    %30 = "stablehlo.maximum"(%29, %28) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
    "func.return"(%30) : (tensor<3xf64>) -> ()
  }) : () -> ()
}) {jax.uses_shape_polymorphism = false, mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} : () -> ()
